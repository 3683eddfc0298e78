#include <filesystem>

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

// With the rights to, it would replace the device itself.
TEST_F(DataPrepareTest, ReplacesFilesOnly) {
  const std::string text = File("device.txt", "hello");
  const std::string link = text + ".link";
  std::filesystem::remove(link);
  std::filesystem::create_symlink("/dev/null", link);
  for (const std::string& out : {std::string("/dev/null"), link}) {
    const CommandOutcome outcome =
        RunCommand({"data", "prepare", text, "--out", out});
    EXPECT_EQ(outcome.code, 1);
    EXPECT_NE(outcome.err.find(out + ": is a device"), std::string::npos)
        << outcome.err;
    EXPECT_TRUE(std::filesystem::is_character_file(out));
  }
  EXPECT_TRUE(std::filesystem::is_symlink(link));
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
  const CommandOutcome size = RunCommand(
      {"data", "prepare", text, "--out", out, "--vocab-size", "300"});
  EXPECT_EQ(size.code, 2) << "bytes has 256 whatever is asked for";
  EXPECT_NE(size.err.find("--tokenizer sentencepiece, not bytes"),
            std::string::npos)
      << size.err;
}

TEST_F(DataPrepareTest, TrainsASentencePieceModelAndUsesItAgain) {
  std::string words;
  for (int i = 0; i < 300; ++i) {
    words += "Once upon a time there were " + std::to_string(i * i) +
             " quick brown foxes\n";
  }
  const std::string text = File("tale.txt", words);
  const std::string out = text + ".tok";
  setenv("PATH", "clients/cli", 1);  // troupe-tokenizer, among the runfiles
  const CommandOutcome outcome = RunCommand(
      {"data", "prepare", text, "--out", out, "--tokenizer", "sentencepiece",
       "--vocab-size", "300", "--model-type", "bpe"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("vocabulary 300 (sentencepiece:"),
            std::string::npos)
      << outcome.out;
  const CommandOutcome shown = RunCommand({"data", "inspect", out});
  EXPECT_NE(shown.out.find("\"Once upon a time"), std::string::npos)
      << shown.out;

  // The same text by the model that was trained: the same tokens.
  const std::string again = text + ".again";
  ASSERT_EQ(RunCommand({"data", "prepare", text, "--out", again, "--tokenizer",
                        out + ".model"})
                .code,
            0);
  EXPECT_EQ(Content(again), Content(out));
  EXPECT_EQ(Content(again + ".model"), Content(out + ".model"));
}

TEST_F(DataPrepareTest, WantsAText) {
  const std::string file = File("data.gz", "\x1f\x8b\x08 compressed");
  const std::string out = file + ".tokens";
  for (const char* tokenizer : {"bytes", "sentencepiece"}) {
    const CommandOutcome refused = RunCommand(
        {"data", "prepare", file, "--out", out, "--tokenizer", tokenizer});
    EXPECT_EQ(refused.code, 1);
    EXPECT_NE(refused.err.find(file +
                               ": is compressed (gzip), not text; "
                               "gunzip -k " +
                               file),
              std::string::npos)
        << refused.err;
    EXPECT_FALSE(std::filesystem::exists(out));
  }
  EXPECT_EQ(
      RunCommand({"data", "prepare", file, "--any-content", "--out", out}).code,
      0);
}

}  // namespace
}  // namespace troupe
