#include <filesystem>

#include "gtest/gtest.h"
#include "tests/clients/cli/command_test_base.h"

namespace troupe {
namespace {

class ExportTest : public CommandTestBase {};

TEST_F(ExportTest, OfACheckpoint) {
  const std::string folder = File("export", "") + ".d";
  std::filesystem::remove_all(folder);
  ASSERT_EQ(RunCommand({"import", "tests/oracle/hf/gpt2_tiny", "--to",
                        folder + "/checkpoints"})
                .code,
            0);
  const CommandOutcome outcome = RunCommand(
      {"export", "--checkpoint", folder + "/checkpoints/step-00000000", "--to",
       folder + "/hf", "--dtype", "bf16"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.rfind(folder + "/hf: step 0, ", 0), 0) << outcome.out;
  EXPECT_NE(outcome.out.find("of bf16 in 1 file"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(folder + "/hf/model.safetensors"));
}

TEST_F(ExportTest, WantsOneSourceAndAPlace) {
  EXPECT_EQ(RunCommand({"export", "--to", "/tmp/unused"}).code, 2);
  EXPECT_EQ(
      RunCommand({"export", "1", "--checkpoint", "c", "--to", "/tmp/unused"})
          .code,
      2);
  EXPECT_EQ(RunCommand({"export", "--checkpoint", "c"}).code, 2);
  const CommandOutcome absent = RunCommand(
      {"export", "--checkpoint", "/nowhere", "--to", "/tmp/troupe-unused"});
  EXPECT_EQ(absent.code, 1);
  EXPECT_NE(absent.err.find("/nowhere"), std::string::npos) << absent.err;
}

TEST_F(ExportTest, AJobWithoutACheckpointSaysSo) {
  const CommandOutcome outcome = Ask({"export", "2", "--to", "/tmp/unused"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("has no checkpoint yet"), std::string::npos)
      << outcome.err;
}

TEST_F(ExportTest, WhatAJobResumedIsItsNewestUntilItHasSaved) {
  scheduler_.jobs[1].mutable_status()->set_resumed_from("/nowhere/step-9");
  const CommandOutcome outcome = Ask({"export", "2", "--to", "/tmp/unused"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("/nowhere/step-9"), std::string::npos)
      << outcome.err;
  const CommandOutcome described = Ask({"describe", "2"});
  EXPECT_NE(described.out.find("resumed    /nowhere/step-9"), std::string::npos)
      << described.out;
}

}  // namespace
}  // namespace troupe
