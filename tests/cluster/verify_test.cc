// `troupe verify` and a model's way in and out, on real daemons.
#include <filesystem>

#include "gtest/gtest.h"
#include "tests/cluster/cluster_test_base.h"

namespace troupe {
namespace {

class VerifyTest : public ClusterTestBase {
 protected:
  // `troupe verify` of the tiny job with these fields.
  Outcome Verify(const std::vector<std::string>& settings) const {
    std::vector<std::string> command = SubmitCommand(settings);
    command.front() = "verify";
    return Troupe(command);
  }
};

TEST_F(VerifyTest, TwoReplicasTrainTheSameModelAsOneRank) {
  Up(2);
  const Outcome outcome = Verify({"parallelism.data=2"});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("the plan trains the same model as one rank"),
            std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("after step 3, the furthest apart of "),
            std::string::npos)
      << outcome.out;
  const Outcome latest = Troupe({"describe", "latest"});
  EXPECT_NE(latest.err.find("made for itself"), std::string::npos)
      << latest.out << latest.err;
}

TEST_F(VerifyTest, RanksThatShareExpertsTrainTheSameModelAsOneRank) {
  Up(2);
  for (const std::vector<std::string>& cut :
       {std::vector<std::string>{"parallelism.data=2"},
        {"parallelism.data=1", "parallelism.tensor=2",
         "parallelism.sequence_parallel=true"}}) {
    std::vector<std::string> settings = WithExperts(cut);
    settings.push_back("parallelism.expert=2");
    const Outcome outcome = Verify(settings);
    EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
    EXPECT_NE(outcome.out.find("the plan trains the same model as one rank"),
              std::string::npos)
        << outcome.out;
  }
}

// A pipeline whose first stage shares columns, and whose second shares samples.
TEST_F(VerifyTest, UnlikeStagesTrainTheSameModelAsOneRank) {
  Up(4);
  const Outcome outcome = Verify(
      {"model.tie_word_embeddings=false", "training.micro_batch_size=2",
       "parallelism.data=1", "parallelism.pipeline=2",
       "parallelism.strategies=[{stage: 0, tensor: 2}, {stage: 1, batch: 2}]"});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("the plan trains the same model as one rank"),
            std::string::npos)
      << outcome.out;
}

// The job's line is named, and nothing is submitted.
TEST_F(VerifyTest, RefusesDelayedGradients) {
  Up(2);
  const Outcome outcome =
      Verify({"parallelism.data=1", "parallelism.pipeline=2",
              "parallelism.pipeline_schedule=pipedream"});
  EXPECT_EQ(outcome.code, 1) << outcome.out << outcome.err;
  EXPECT_NE(outcome.err.find("pipedream trains with delayed gradients"),
            std::string::npos)
      << outcome.err;
  EXPECT_EQ(outcome.out.find("accepted"), std::string::npos) << outcome.out;
}

TEST_F(VerifyTest, InBf16WithinItsRounding) {
  Up(2);
  const Outcome outcome =
      Verify({"parallelism.data=2", "training.precision=bf16"});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
}

// Large weights have large gradients, which overflow until the scale is found.
TEST_F(VerifyTest, InFp16WhoseFirstStepsOverflow) {
  Up(2);
  const std::vector<std::string> fp16 = {
      "parallelism.data=2", "training.precision=fp16",
      "training.gradient_precision=parameters", "training.global_batch_size=2"};
  const auto with_range = [&](const std::string& range) {
    std::vector<std::string> settings = fp16;
    settings.push_back("model.initializer_range=" + range);
    return Verify(settings);
  };
  const Outcome some = with_range("1");
  EXPECT_EQ(some.code, 0) << some.out << some.err;
  EXPECT_NE(some.out.find("that both skipped"), std::string::npos) << some.out;
  const Outcome all = with_range("2");
  EXPECT_EQ(all.code, 1) << all.out << all.err;
  EXPECT_NE(all.err.find("there is nothing to compare with: gradients "
                         "overflowed in each step of both"),
            std::string::npos)
      << all.err;
}

// Trained, exported, imported: the text that it writes is the same.
TEST_F(VerifyTest, AModelGoesOutAndComesIn) {
  Up(1);
  const int job = Submit({"parallelism.data=1", "training.steps=3",
                          "checkpoint.directory=" + dir() + "/checkpoints"});
  ASSERT_EQ(Watch(job).code, 0);
  const std::string hf = dir() + "/hf";
  const Outcome exported = Troupe({"export", std::to_string(job), "--to", hf});
  ASSERT_EQ(exported.code, 0) << exported.err;
  const Outcome imported =
      RunProgram({kTroupe, "import", hf, "--to", dir() + "/imported"});
  ASSERT_EQ(imported.code, 0) << imported.err;
  const std::vector<std::string> write = {
      "--prompt-ids",     "1,2,3", "--ids", "--temperature", "0",
      "--max-new-tokens", "8"};
  std::vector<std::string> before = {"generate", std::to_string(job)};
  before.insert(before.end(), write.begin(), write.end());
  std::vector<std::string> after = {"generate", "--checkpoint",
                                    dir() + "/imported/step-00000000"};
  after.insert(after.end(), write.begin(), write.end());
  const Outcome first = Troupe(before);
  const Outcome second = Troupe(after);
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_EQ(first.out, second.out);
  EXPECT_NE(first.out.find(','), std::string::npos) << first.out;
}

}  // namespace
}  // namespace troupe
