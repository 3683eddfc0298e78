#include <filesystem>

#include "gtest/gtest.h"
#include "tests/clients/cli/command_test_base.h"

namespace troupe {
namespace {

class ImportTest : public CommandTestBase {};

TEST_F(ImportTest, SaysWhatToDoWithTheCheckpoint) {
  const std::string to = File("import", "") + ".checkpoints";
  std::filesystem::remove_all(to);
  const CommandOutcome outcome =
      RunCommand({"import", "tests/oracle/hf/llama_tiny", "--to", to});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.rfind(to + "/step-00000000: llama, ", 0), 0)
      << outcome.out;
  EXPECT_NE(outcome.out.find("checkpoint: {resume: " + to), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(to + "/step-00000000/manifest.json"));
}

TEST_F(ImportTest, ReplacesNothing) {
  const std::string to = File("import_again", "") + ".checkpoints";
  std::filesystem::remove_all(to);
  const std::vector<std::string> import = {
      "import", "tests/oracle/hf/llama_tiny", "--to", to};
  ASSERT_EQ(RunCommand(import).code, 0);
  const std::string manifest = Content(to + "/step-00000000/manifest.json");
  const CommandOutcome again =
      RunCommand({"import", "tests/oracle/hf/gpt2_tiny", "--to", to});
  EXPECT_EQ(again.code, 1);
  EXPECT_EQ(again.err, "troupe: " + to +
                           "/step-00000000: is there already; "
                           "remove it, or give another directory\n");
  EXPECT_EQ(Content(to + "/step-00000000/manifest.json"), manifest);
}

// What is printed is copied.
TEST_F(ImportTest, QuotesPathsForShellAndJob) {
  const std::string to = testing::TempDir() + "/im port";
  std::filesystem::remove_all(to);
  const CommandOutcome outcome =
      RunCommand({"import", "tests/oracle/hf/llama_tiny", "--to", to});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("--checkpoint '" + to + "/step-00000000'\n"),
            std::string::npos)
      << outcome.out;
  const std::string current = std::filesystem::current_path();
  EXPECT_NE(outcome.out.find("model: {hf: " + current +
                             "/tests/oracle/hf/llama_tiny}"),
            std::string::npos)
      << outcome.out;
}

TEST_F(ImportTest, SaysWhatIsWrong) {
  const CommandOutcome outcome =
      RunCommand({"import", "/nowhere", "--to", "/tmp/unused"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("/nowhere/config.json"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(RunCommand({"import", "tests/oracle/hf/llama_tiny"}).code, 2);
}

}  // namespace
}  // namespace troupe
