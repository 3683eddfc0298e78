// Whole commands against a scheduler that answers from a script.
#include "clients/cli/run.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "gtest/gtest.h"
#include "storage/dataset/token_file.h"
#include "tests/clients/cpp/fake_scheduler.h"

namespace troupe {
namespace {

struct Outcome {
  int code;
  std::string out;
  std::string err;
};

Outcome Troupe(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  std::ostringstream err;
  Console console{.out = out, .err = err};
  const int code = RunTroupe(arguments, console);
  return {code, out.str(), err.str()};
}

class RunTest : public testing::Test {
 protected:
  RunTest() {
    for (int id = 1; id <= 2; ++id) {
      JobStatus& status = *scheduler_.jobs.emplace_back().mutable_status();
      status.set_id(id);
      status.set_name("demo");
      status.set_state(id == 1 ? SUCCEEDED : RUNNING);
    }
  }

  // With the fake scheduler's address.
  Outcome Ask(std::vector<std::string> arguments) {
    arguments.push_back("--scheduler");
    arguments.push_back(scheduler_.address());
    return Troupe(arguments);
  }

  std::string File(const std::string& name, const std::string& content) {
    const std::string path = std::filesystem::path(testing::TempDir()) / name;
    std::ofstream(path) << content;
    return path;
  }

  FakeScheduler scheduler_;
};

TEST_F(RunTest, UsageErrorsAreOneLineAndExitWithTwo) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"dance"},
                                             {"submit"},
                                             {"submit", "x", "--sett", "a=1"},
                                             {"up", "--workers", "0"},
                                             {"up", "--workers", "1"},
                                             {"down"},
                                             {"data"},
                                             {"data", "prepare", "x"},
                                             {"trace", "1", "--format", "gif"},
                                             {"generate", "--prompt", "x"}}) {
    const Outcome outcome = Troupe(arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err.substr(0, 8), "troupe: ");
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
  }
}

TEST_F(RunTest, EveryCommandHasHelp) {
  EXPECT_EQ(Troupe({"--help"}).code, 0);
  for (const CommandRow& row : CommandTable()) {
    std::istringstream words(row.name);
    std::vector<std::string> arguments;
    for (std::string word; words >> word;) arguments.push_back(word);
    arguments.push_back("--help");
    const Outcome outcome = Troupe(arguments);
    EXPECT_EQ(outcome.code, 0) << row.name;
    EXPECT_NE(outcome.out.find(row.summary), std::string::npos) << row.name;
  }
}

TEST_F(RunTest, SubmitsAJobWithOverrides) {
  const std::string file = File("run_job.yaml", "name: demo\n");
  const Outcome outcome = Ask({"submit", "--set", "optimizer.betas=[0.9,0.99]",
                               "--set", "training.steps=7", file});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.substr(0, 22), "job 1 (demo) accepted\n");
  const JobSpec job = scheduler_.submitted().at(0);
  EXPECT_EQ(job.optimizer().betas(1), 0.99);
  EXPECT_EQ(job.training().steps(), 7);
}

TEST_F(RunTest, ARefusalHasLineAndColumn) {
  scheduler_.refusal = {grpc::StatusCode::INVALID_ARGUMENT,
                        "parallelism.data: 3 does not divide 8"};
  const std::string file =
      File("run_bad.yaml", "name: demo\nparallelism:\n  data: 3\n");
  const Outcome outcome = Ask({"submit", file});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "troupe: " + file +
                             ":3:9: parallelism.data: 3 does not divide 8\n");
}

TEST_F(RunTest, WatchEndsAsTheJobDoes) {
  const std::string file = File("run_watch.yaml", "name: demo\n");
  WatchJobResponse& end = scheduler_.watch.emplace_back();
  end.mutable_status()->set_id(1);
  end.mutable_status()->set_name("demo");
  end.mutable_status()->set_state(SUCCEEDED);
  EXPECT_EQ(Ask({"submit", file, "--watch"}).code, 0);
  scheduler_.watch[0].mutable_status()->set_state(FAILED);
  scheduler_.watch[0].mutable_status()->set_reason("worker-1 was lost");
  const Outcome failed = Ask({"watch", "latest"});
  EXPECT_EQ(failed.code, 1);
  EXPECT_EQ(failed.err, "troupe: job 1 (demo) failed: worker-1 was lost\n");
  EXPECT_EQ(scheduler_.watched().back().id(), 2) << "the newest";
}

TEST_F(RunTest, FindsJobsByNumberNameAndLatest) {
  EXPECT_NE(Ask({"describe", "1"}).out.find("SUCCEEDED"), std::string::npos);
  EXPECT_NE(Ask({"describe", "demo"}).out.find("RUNNING"), std::string::npos);
  EXPECT_NE(Ask({"describe", "latest"}).out.find("RUNNING"), std::string::npos);
  const Outcome nobody = Ask({"describe", "nobody"});
  EXPECT_EQ(nobody.code, 1);
  EXPECT_EQ(nobody.err,
            "troupe: no job is called nobody; troupe jobs lists those there "
            "are\n");
  EXPECT_EQ(Ask({"describe", "9"}).err, "troupe: no job 9\n");
}

TEST_F(RunTest, CancelsAndLists) {
  EXPECT_EQ(Ask({"cancel", "2"}).out, "job 2 (demo) is CANCELLED\n");
  EXPECT_EQ(scheduler_.cancelled(), std::vector<int64_t>{2});
  EXPECT_NE(Ask({"jobs"}).out.find(" 2  demo  RUNNING"), std::string::npos);
  EXPECT_EQ(Ask({"workers"}).code, 0);
  EXPECT_NE(Ask({"jobs", "--json"}).out.find("\"state\": \"RUNNING\""),
            std::string::npos);
}

TEST_F(RunTest, GeneratesText) {
  scheduler_.text = {" upon", " a time"};
  const Outcome outcome =
      Ask({"generate", "latest", "--prompt", "Once", "--top-k", "5"});
  EXPECT_EQ(outcome.out, "Once upon a time\n");
  EXPECT_EQ(scheduler_.generated().at(0).job(), 2);
  EXPECT_EQ(scheduler_.generated().at(0).top_k(), 5);
}

TEST_F(RunTest, PreparesData) {
  const std::string text = File("run_text.txt", "hello");
  const std::string out = text + ".tokens";
  const Outcome outcome = Troupe({"data", "prepare", text, "--out", out});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("5 tokens, vocabulary 256 (bytes), 69 B"),
            std::string::npos)
      << outcome.out;
  EXPECT_EQ(TokenFile::Open(out).value().size(), 5);
  const Outcome missing = Troupe({"data", "prepare", "/no/such", "--out", out});
  EXPECT_EQ(missing.code, 1);
  EXPECT_NE(missing.err.find("/no/such"), std::string::npos);
  EXPECT_EQ(
      Troupe({"data", "prepare", text, "--out", out, "--tokenizer", "nosuch"})
          .code,
      1);
}

TEST_F(RunTest, TracesToAFile) {
  Span& span =
      *scheduler_.timeline.mutable_measured()->add_ranks()->add_spans();
  span.set_kind(Instruction::FORWARD);
  span.set_lane(COMPUTE);
  span.set_end_ns(1000);
  const std::string file = File("run_trace.svg", "");
  EXPECT_EQ(Ask({"trace", "1", "--format", "svg", "--out", file}).code, 0);
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  EXPECT_EQ(line.substr(0, 4), "<svg");
  EXPECT_NE(Ask({"trace", "1"}).out.find("rank 0  compute"), std::string::npos);
  EXPECT_EQ(Ask({"trace", "1", "--out", "/no/such/file"}).code, 1);
}

}  // namespace
}  // namespace troupe
