#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "storage/dataset/token_file_writer.h"
#include "tests/clients/cli/command_test_base.h"

namespace troupe {
namespace {

constexpr char kModel[] = "tests/oracle/hf/gpt2_tiny";

class EvalTest : public CommandTestBase {
 protected:
  EvalTest() {
    auto writer = TokenFileWriter::Create(
        {.path = tokens_, .vocab_size = 96, .tokenizer = "none"});
    EXPECT_TRUE(writer.ok()) << writer.status();
    EXPECT_TRUE((*writer)->Append(std::vector<int32_t>(1001, 1)).ok());
    EXPECT_TRUE((*writer)->Finish().ok());
    scheduler_.workers = [] {
      std::vector<WorkerStatus> workers(4);
      for (WorkerStatus& worker : workers) {
        worker.set_state(WorkerStatus::IDLE);
      }
      workers[2].set_state(WorkerStatus::BUSY);
      workers[3].set_set_aside("cordoned");
      return workers;
    };
    StepRecord& last =
        *scheduler_.jobs[0].mutable_status()->mutable_last_step();
    last.set_loss(2.5);
    last.set_counted_tokens(1000);
    WatchersSee(SUCCEEDED, "");
  }

  const std::string tokens_ = File("eval.tokens", "");
};

TEST_F(EvalTest, SubmitsAJobForAllIdleWorkersAndShowsWhatItFound) {
  const CommandOutcome outcome = Ask({"eval", kModel, "--tokens", tokens_,
                                      "--set", "training.sequence_length=10"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const JobSpec job = scheduler_.asked().submitted.at(0);
  EXPECT_TRUE(job.evaluate());
  EXPECT_EQ(job.name(), "eval gpt2_tiny");
  EXPECT_EQ(job.parallelism().data(), 2);
  EXPECT_EQ(job.data().validation(), tokens_);
  EXPECT_NE(outcome.out.find("\nstep 1/4  loss"), std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("\nloss 2.500000, perplexity 12.1825 on 1,000 "
                             "tokens (100 windows of 10)\n"),
            std::string::npos)
      << outcome.out;
}

TEST_F(EvalTest, WritesNothingButTheResultForPrograms) {
  const CommandOutcome outcome =
      Ask({"eval", kModel, "--tokens", tokens_, "--json", "--set",
           "training.sequence_length=10"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const nlohmann::json json =
      nlohmann::json::parse(outcome.out, nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(json.is_object()) << outcome.out;
  EXPECT_EQ(json["loss"], 2.5);
  EXPECT_DOUBLE_EQ(json["perplexity"], std::exp(2.5));
  EXPECT_EQ(json["tokens"], 1000);
  EXPECT_EQ(json["windows"], 100);
  EXPECT_EQ(json["sequence_length"], 10);
  EXPECT_EQ(json["job"], 1);
  EXPECT_NE(outcome.err.find("step 1/4"), std::string::npos) << outcome.err;
}

TEST_F(EvalTest, FailsAsItsJobDoes) {
  WatchersSee(FAILED, "out of luck");
  const CommandOutcome outcome = Ask({"eval", kModel, "--tokens", tokens_});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("failed: out of luck"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(outcome.out.find("perplexity"), std::string::npos) << outcome.out;
}

TEST_F(EvalTest, RefusalsNameTheOverrideOrTheModel) {
  scheduler_.refusal =
      absl::InvalidArgumentError("parallelism.tensor: 3 is too many");
  EXPECT_EQ(Ask({"eval", kModel, "--tokens", tokens_, "--set",
                 "parallelism.tensor=3"})
                .err,
            "troupe: --set parallelism.tensor: 3 is too many\n");
  scheduler_.refusal = absl::InvalidArgumentError("training.precision: no");
  EXPECT_EQ(Ask({"eval", kModel, "--tokens", tokens_}).err,
            absl::StrCat("troupe: ", kModel, ": training.precision: no\n"));
  EXPECT_EQ(Ask({"eval", kModel}).code, 2);
  EXPECT_EQ(Ask({"eval", "--tokens", tokens_}).code, 2);
}

TEST_F(EvalTest, TakesAJobForItsNewestCheckpoint) {
  EXPECT_NE(Ask({"eval", "2", "--tokens", tokens_})
                .err.find("2: there is no such directory, and as a job: job 2 "
                          "(demo) has no checkpoint yet"),
            std::string::npos);
  JobStatus& status = *scheduler_.jobs[1].mutable_status();
  for (const int64_t step : {5, 20, 10}) {
    CheckpointRecord& checkpoint = *status.add_checkpoints();
    checkpoint.set_step(step);
    checkpoint.set_path(absl::StrCat("/no/such/step-", step));
  }
  EXPECT_NE(Ask({"eval", "2", "--tokens", tokens_})
                .err.find("/no/such/step-20: there is no such directory"),
            std::string::npos);
  EXPECT_NE(Ask({"eval", "3", "--tokens", tokens_})
                .err.find("3: there is no such directory, and as a job: "),
            std::string::npos);
}

constexpr char kQuestions[] =
    R"({"prompt": "a b", "choices": [" c", " dd"], "answer": 1}
{"query": "x", "choices": [" y", " z", " zz"], "gold": 0}
)";

class ChoicesTest : public EvalTest {
 protected:
  // Five rows, three in a step, and what a scheduler says of them.
  void RowsHaveLosses(const std::vector<double>& losses,
                      const std::vector<int>& tokens) {
    WatchJobResponse& update = scheduler_.watch[0];
    update.clear_steps();
    for (int s = 0; s < 2; ++s) {
      StepRecord& step = *update.add_steps();
      step.set_step(s + 1);
      for (int i = 3 * s; i < 3 * s + 3; ++i) {
        const bool is_row = i < 5;
        step.mutable_sequence_losses()->add_losses(is_row ? losses[i] : 0);
        step.mutable_sequence_losses()->add_counted_tokens(is_row ? tokens[i]
                                                                  : 0);
      }
    }
  }
  CommandOutcome AskChoices(std::vector<std::string> words = {}) {
    std::vector<std::string> all = {
        "eval",        kModel,
        "--choices",   questions_,
        "--tokenizer", "bytes",
        "--set",       "training.global_batch_size=3",
        "--set",       "parallelism.data=1"};
    all.insert(all.end(), words.begin(), words.end());
    return Ask(all);
  }
  // Files beside the questions that a run left.
  int FilesLeft() const {
    int left = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator(testing::TempDir())) {
      left += absl::StrContains(entry.path().string(), "questions.jsonl.");
    }
    return left;
  }

  const std::string questions_ = File("questions.jsonl", kQuestions);
};

TEST_F(ChoicesTest, ScoresTheLossesOfItsJob) {
  RowsHaveLosses({4, 5, 2, 3, 1}, {2, 3, 2, 2, 3});
  const std::string out = File("results.jsonl", "");
  const CommandOutcome outcome = AskChoices({"--out", out});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const JobSpec job = scheduler_.asked().submitted.at(0);
  EXPECT_TRUE(job.evaluate());
  EXPECT_TRUE(job.sequence_losses());
  EXPECT_EQ(job.training().steps(), 2);
  EXPECT_EQ(job.training().sequence_length(), 16);
  EXPECT_EQ(job.data().validation().rfind(questions_, 0), 0u)
      << job.data().validation();
  // acc: of the first item " c", of the second " zz". A character of " dd" is
  // likelier than one of " c".
  EXPECT_NE(outcome.out.find("\nacc 0.0000 +- 0.0000, acc_norm 0.5000 +- "
                             "0.5000, acc_bytes 0.5000 +- 0.5000 on 2 items (5 "
                             "choices in windows of 16)\n"),
            std::string::npos)
      << outcome.out;
  const std::string lines = Content(out);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2);
  EXPECT_EQ(
      nlohmann::json::parse(lines.substr(0, lines.find('\n')))["acc_norm"], 1);
  EXPECT_EQ(FilesLeft(), 0);
}

TEST_F(ChoicesTest, WritesNothingButTheResultForPrograms) {
  RowsHaveLosses({4, 5, 1, 3, 2}, {2, 3, 2, 2, 3});
  const CommandOutcome outcome = AskChoices({"--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const nlohmann::json json =
      nlohmann::json::parse(outcome.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << outcome.out;
  EXPECT_EQ(json["items"], 2);
  EXPECT_EQ(json["windows"], 5);
  EXPECT_EQ(json["acc"]["value"], 0.5);
  EXPECT_DOUBLE_EQ(json["acc"]["stderr"], 0.5);
}

TEST_F(ChoicesTest, SaysThatLossesAreMissing) {
  const CommandOutcome silent = AskChoices();
  EXPECT_EQ(silent.code, 1);
  EXPECT_NE(silent.err.find("questions.jsonl: line 1: the loss of choices[0] "
                            "is of 0 tokens, and it has 2"),
            std::string::npos)
      << silent.err;
  EXPECT_EQ(FilesLeft(), 0);
}

TEST_F(ChoicesTest, NamesTheChoiceThatHasNoLoss) {
  WatchersSee(FAILED,
              "loss nan: the weights give no finite loss on these windows (the "
              "first is window 3, counted from 0)");
  const CommandOutcome outcome = AskChoices();
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find(
                absl::StrCat("; window 3 is ", questions_, ":2: choices[1]\n")),
            std::string::npos)
      << outcome.err;
  EXPECT_EQ(FilesLeft(), 0);
}

// Its losses come to this command alone, and its workers read the rows while it
// runs.
TEST_F(ChoicesTest, CancelsTheJobOfASchedulerThatIsSilent) {
  scheduler_.watch.clear();
  scheduler_.watch_breaks = true;
  const CommandOutcome outcome = AskChoices({"--patience", "0"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("did not come back"), std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.err.find("job 1 is cancelled"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(scheduler_.asked().cancelled, std::vector<int64_t>({1}));
  EXPECT_EQ(FilesLeft(), 0);
}

TEST_F(ChoicesTest, LeavesTheRowsToAJobThatItCannotCancel) {
  scheduler_.watch.clear();
  scheduler_.watch_breaks = true;
  scheduler_.jobs.clear();  // it knows of none that could be cancelled
  const CommandOutcome outcome = AskChoices({"--patience", "0"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("job 1 could not be cancelled"), std::string::npos)
      << outcome.err;
  const std::string rows =
      scheduler_.asked().submitted.at(0).data().validation();
  EXPECT_NE(outcome.err.find(absl::StrCat("job 1 may still read ", rows)),
            std::string::npos)
      << outcome.err;
  EXPECT_EQ(FilesLeft(), 1);
  EXPECT_TRUE(std::filesystem::remove(rows));
}

TEST_F(ChoicesTest, RefusesBeforeAnythingIsSubmitted) {
  EXPECT_EQ(AskChoices({"--bos", "--no-bos"}).code, 2);
  EXPECT_EQ(AskChoices({"--tokens", tokens_}).code, 2);
  EXPECT_EQ(Ask({"eval", kModel, "--tokens", tokens_, "--bos"}).code, 2);
  EXPECT_NE(AskChoices({"--bos"}).err.find("has no BOS token"),
            std::string::npos);
  EXPECT_NE(AskChoices({"--set", "training.sequence_length=4"})
                .err.find("questions.jsonl:1: choices[1] is of 6 tokens"),
            std::string::npos);
  EXPECT_NE(AskChoices({"--work", "/no/such/folder"}).err.find("--work"),
            std::string::npos);
  EXPECT_NE(Ask({"eval", kModel, "--choices", "data:q.jsonl"})
                .err.find("--choices: data:q.jsonl is below a root of the "
                          "workers, and the questions are read by this "
                          "command"),
            std::string::npos);
  File("questions.jsonl", "{\"prompt\": 1}\n");
  EXPECT_NE(AskChoices().err.find("questions.jsonl:1: its \"prompt\" is a "
                                  "number, not a text"),
            std::string::npos);
  EXPECT_TRUE(scheduler_.asked().submitted.empty());
  EXPECT_EQ(FilesLeft(), 0);
}

TEST_F(ChoicesTest, DoubtsWhatIsSeldomMeant) {
  File("questions.jsonl",
       R"({"prompt": "is", "choices": ["Oslo", "Oslo", "Rome"], "answer": 2})");
  const CommandOutcome outcome = AskChoices();
  EXPECT_NE(outcome.err.find("1 item has a choice twice"), std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.err.find("give --delimiter ' '"), std::string::npos)
      << outcome.err;
}

}  // namespace
}  // namespace troupe
