#include <filesystem>
#include <string>
#include <utility>
#include <vector>

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
                out + ": 5 tokens in 1 document, vocabulary 256 (bytes), 144 "
                      "B, in ",
                0),
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
  EXPECT_NE(size.err.find("or --tokenizer sentencepiece, not bytes"),
            std::string::npos)
      << size.err;
}

TEST_F(DataPrepareTest, MakesRecordsOfWhichSomeTokensCount) {
  const std::string chats =
      File("chats.jsonl",
           "{\"prompt\": \"ab\", \"completion\": \"cde\"}\n"
           "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}, "
           "{\"role\": \"assistant\", \"content\": \"yz\"}]}\n");
  const std::string chat_template =
      File("chat.jinja",
           "{% for m in messages %}{{ m.role[0] + m.content }}{% endfor %}"
           "{% if add_generation_prompt %}a{% endif %}");
  const std::string out = chats + ".tokens";
  const CommandOutcome outcome =
      RunCommand({"data", "prepare", chats, "--completions", "--chat-template",
                  chat_template, "--sequence-length", "8", "--out", out});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("5 tokens count in the loss; 2 sequences of 8, 7 "
                             "tokens are padding"),
            std::string::npos)
      << outcome.out;
  const TokenFile file = TokenFile::Open(out).value();
  ASSERT_EQ(file.size(), 17u);
  int32_t tokens[17];
  ASSERT_TRUE(file.Read(0, 17, tokens).ok());
  EXPECT_EQ(std::string(tokens, tokens + 5), "abcde");
  EXPECT_EQ(std::string(tokens + 8, tokens + 13), "uxayz");
  bool counts[17];
  ASSERT_TRUE(file.ReadCounted(0, 17, counts).ok());
  std::string counted;
  for (const bool one : counts) counted += one ? '1' : '0';
  EXPECT_EQ(counted, "00111000000110000");
  const CommandOutcome inspected =
      RunCommand({"data", "inspect", out, "--verify"});
  EXPECT_EQ(inspected.code, 0) << inspected.err;
  for (const char* const line :
       {"counted     5 tokens count in the loss",
        "packed      into sequences of 8 tokens", "and which tokens count"}) {
    EXPECT_NE(inspected.out.find(line), std::string::npos) << inspected.out;
  }
}

TEST_F(DataPrepareTest, SaysWhatRecordsNeed) {
  const std::string chats =
      File("bad.jsonl", "{\"messages\": [{\"role\": \"user\"}]}\n");
  const std::string out = chats + ".tokens";
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"--completions"}, "bad.jsonl:1: there is no chat template"},
      {{"--sequence-length", "8"}, "are for --completions"},
      {{"--completions", "--field", "a"}, "not for --completions"},
      {{"--completions", "--train-tokenizer", "bpe"}, "--tokenizer DIR"},
      {{"--completions", "--chat-template", "/no/such"}, "/no/such"}};
  for (const auto& [flags, words] : wrong) {
    std::vector<std::string> command = {"data", "prepare", chats, "--out", out};
    command.insert(command.end(), flags.begin(), flags.end());
    const CommandOutcome outcome = RunCommand(command);
    EXPECT_NE(outcome.code, 0);
    EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome.err;
  }
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
  const std::string file = File("data.txt", "%PDF-1.4 and more");
  const std::string out = file + ".tokens";
  for (const char* tokenizer : {"bytes", "sentencepiece"}) {
    const CommandOutcome refused = RunCommand(
        {"data", "prepare", file, "--out", out, "--tokenizer", tokenizer});
    EXPECT_EQ(refused.code, 1);
    EXPECT_NE(
        refused.err.find(file + ": is a PDF, not text; pdftotext " + file),
        std::string::npos)
        << refused.err;
    EXPECT_FALSE(std::filesystem::exists(out));
  }
  EXPECT_EQ(
      RunCommand({"data", "prepare", file, "--any-content", "--out", out}).code,
      0);
}

TEST_F(DataPrepareTest, TakesAFolderOfJsonLines) {
  std::filesystem::create_directories(
      std::filesystem::path(testing::TempDir()) / "corpus");
  const std::string first =
      File("corpus/a.jsonl", "{\"body\": \"one\"}\n{\"body\": 2}\n");
  File("corpus/b.txt", "two");
  File("corpus/notes.md", "three");
  const std::string folder = first.substr(0, first.rfind('/'));
  const std::string out = folder + ".tokens";
  const std::vector<std::string> command = {
      "data", "prepare", folder, "--field", "body", "--out", out};
  const CommandOutcome bad = RunCommand(command);
  EXPECT_EQ(bad.code, 1);
  EXPECT_NE(bad.err.find("a.jsonl:2: its field \"body\" is a number"),
            std::string::npos)
      << bad.err;
  std::vector<std::string> skipping = command;
  skipping.push_back("--skip-bad-lines");
  const CommandOutcome done = RunCommand(skipping);
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(done.out.rfind(out + ": 6 tokens in 2 documents,", 0), 0)
      << done.out;
  EXPECT_NE(done.err.find("passed over: 1 of .md"), std::string::npos)
      << done.err;
  EXPECT_NE(done.err.find("1 bad lines were left out"), std::string::npos)
      << done.err;
}

}  // namespace
}  // namespace troupe
