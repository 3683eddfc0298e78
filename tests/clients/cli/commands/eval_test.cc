#include <cmath>
#include <string>

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

}  // namespace
}  // namespace troupe
