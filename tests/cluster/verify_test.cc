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
}

TEST_F(VerifyTest, InBf16WithinItsRounding) {
  Up(2);
  const Outcome outcome =
      Verify({"parallelism.data=2", "training.precision=bf16"});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
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
