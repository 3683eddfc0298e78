#include "gtest/gtest.h"
#include "storage/dataset/token_file.h"
#include "tests/clients/cli/command_test_base.h"

namespace troupe {
namespace {

class DataPrepareTest : public CommandTestBase {};

TEST_F(DataPrepareTest, WritesATokenFile) {
  const std::string text = File("text.txt", "hello");
  const std::string out = text + ".tokens";
  const CommandOutcome outcome =
      RunCommand({"data", "prepare", text, "--out", out});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.rfind(
                out + ": 5 tokens, vocabulary 256 (bytes), 69 B, in ", 0),
            0)
      << outcome.out;
  const TokenFile file = TokenFile::Open(out).value();
  int32_t tokens[5];
  ASSERT_TRUE(file.Read(0, 5, tokens).ok());
  EXPECT_EQ(std::string(tokens, tokens + 5), "hello");
}

TEST_F(DataPrepareTest, SaysWhatIsWrong) {
  const std::string text = File("more.txt", "hello");
  const std::string out = text + ".tokens";
  const CommandOutcome missing =
      RunCommand({"data", "prepare", "/no/such", "--out", out});
  EXPECT_EQ(missing.code, 1);
  EXPECT_NE(missing.err.find("/no/such"), std::string::npos) << missing.err;
  const CommandOutcome tokenizer = RunCommand(
      {"data", "prepare", text, "--out", out, "--tokenizer", "words"});
  EXPECT_EQ(tokenizer.code, 1);
  EXPECT_NE(tokenizer.err.find("bytes"), std::string::npos) << tokenizer.err;
}

}  // namespace
}  // namespace troupe
