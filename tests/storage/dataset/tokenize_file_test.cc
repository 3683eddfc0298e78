#include "storage/dataset/tokenize_file.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "storage/dataset/bytes_tokenizer.h"
#include "storage/dataset/make_tokenizer.h"
#include "storage/dataset/sentencepiece/tokenizer.h"
#include "storage/dataset/token_file.h"
#include "tests/storage/dataset/sentencepiece/library.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

std::vector<int32_t> Tokens(const std::string& path) {
  const auto file = TokenFile::Open(path);
  EXPECT_TRUE(file->Verify().ok());
  std::vector<int32_t> tokens(file->size());
  EXPECT_TRUE(file->Read(0, tokens.size(), tokens.data()).ok());
  return tokens;
}

TEST(TokenizeFile, TakesAFileLargerThanItsBuffers) {
  TempDir dir;
  std::string text(3'500'000, '\0');
  for (size_t i = 0; i < text.size(); ++i) {
    text[i] = static_cast<char>(i * 7 + i / 1000);
  }
  WriteText(dir.File("text"), text);
  const auto tokenizer = MakeBytesTokenizer();
  uint64_t told = 0;
  const auto header =
      TokenizeFile(*tokenizer, {.text_path = dir.File("text"),
                                .path = dir.File("t"),
                                .progress = [&](uint64_t done, uint64_t total) {
                                  EXPECT_LT(told, done);
                                  EXPECT_EQ(total, text.size());
                                  told = done;
                                  return absl::OkStatus();
                                }});
  ASSERT_TRUE(header.ok()) << header.status().ToString();
  EXPECT_EQ(header->token_count, text.size());
  EXPECT_EQ(told, text.size());
  EXPECT_EQ(*tokenizer->Decode(Tokens(dir.File("t"))), text);
  EXPECT_TRUE(
      Fails(TokenizeFile(*tokenizer, {dir.File("no"), dir.File("t")}).status(),
            absl::StatusCode::kNotFound, {dir.File("no")}));
}

// Until all of the new tokens are on the disk.
TEST(TokenizeFile, TheOldTokensKeepTheirModel) {
  TempDir dir;
  WriteText(dir.File("text"), "new words");
  const std::string old_model = SmallModel(LikeLlama("unigram"));
  const std::string model = SmallModel(LikeLlama("bpe"));
  const auto old_tokenizer = MakeSentencePieceTokenizer(old_model);
  const auto tokenizer = MakeSentencePieceTokenizer(model);
  TokenizeFileOptions options = {
      .text_path = dir.File("text"), .path = dir.File("t"), .model = old_model};
  ASSERT_TRUE(TokenizeFile(**old_tokenizer, options).ok());
  const std::vector<int32_t> old_tokens = Tokens(dir.File("t"));
  const auto expect = [&](const std::string& of_model,
                          const std::vector<int32_t>& tokens) {
    EXPECT_EQ(*ReadTokenizerModel(TokenizerModelPath(dir.File("t"))), of_model);
    EXPECT_EQ(Tokens(dir.File("t")), tokens);
  };
  options.model = model;
  options.progress = [](uint64_t, uint64_t) {
    return absl::CancelledError("enough");
  };
  EXPECT_TRUE(absl::IsCancelled(TokenizeFile(**tokenizer, options).status()));
  expect(old_model, old_tokens);
  options.progress = [&](uint64_t, uint64_t) {
    expect(old_model, old_tokens);  // while the new ones are written
    return absl::OkStatus();
  };
  ASSERT_TRUE(TokenizeFile(**tokenizer, options).ok());
  std::vector<int32_t> tokens;
  ASSERT_TRUE((*tokenizer)->Encode("new words", tokens).ok());
  ASSERT_NE(tokens, old_tokens);
  expect(model, tokens);
}

// SentencePiece's trainer gives its models such names, too.
TEST(TokenizeFile, TokensWithoutAModelLeaveAnothersAlone) {
  TempDir dir;
  WriteText(dir.File("text"), "new words");
  const std::string model = SmallModel(LikeLlama("unigram"));
  const std::string path = TokenizerModelPath(dir.File("t"));
  WriteText(path, model);
  ASSERT_TRUE(
      TokenizeFile(*MakeBytesTokenizer(),
                   {.text_path = dir.File("text"), .path = dir.File("t")})
          .ok());
  EXPECT_EQ(*ReadTokenizerModel(path), model);
}

// Not "is it text?": what to do about it.
TEST(TokenizeFile, ATextThatCannotBeCutIsRefused) {
  TempDir dir;
  WriteText(dir.File("text"), std::string((64 << 20) + (1 << 19), 'x'));
  const std::string model = SmallModel(LikeLlama("unigram"));
  const auto tokenizer = MakeSentencePieceTokenizer(model);
  const auto tokenize = [&](bool eos_per_line) {
    return TokenizeFile(**tokenizer, {.text_path = dir.File("text"),
                                      .path = dir.File("t"),
                                      .eos_per_line = eos_per_line})
        .status();
  };
  EXPECT_TRUE(Fails(tokenize(false), absl::StatusCode::kInvalidArgument,
                    {dir.File("text"), "without a place to cut",
                     (*tokenizer)->name(), "break the text into lines"}));
  EXPECT_TRUE(Fails(tokenize(true), absl::StatusCode::kInvalidArgument,
                    {dir.File("text"), "a line has more than",
                     "do without --append-eos-per-line"}));
}

TEST(TokenizeFile, EndedItLeavesNothing) {
  TempDir dir;
  WriteText(dir.File("text"), std::string(3'000'000, 'x'));
  WriteText(dir.File("t"), "what was there");
  int asked = 0;
  const absl::Status ended =
      TokenizeFile(*MakeBytesTokenizer(),
                   {.text_path = dir.File("text"),
                    .path = dir.File("t"),
                    .progress =
                        [&](uint64_t, uint64_t) {
                          return ++asked == 5 ? absl::CancelledError("enough")
                                              : absl::OkStatus();
                        }})
          .status();
  EXPECT_EQ(ended, absl::CancelledError("enough"));
  std::set<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(dir.File("t")).parent_path())) {
    left.insert(entry.path().filename());
  }
  EXPECT_EQ(left, (std::set<std::string>{"t", "text"}));
  std::string content;
  std::getline(std::ifstream(dir.File("t")), content);
  EXPECT_EQ(content, "what was there");
}

TEST(TokenizeFile, PartsOfATextAreNotSeen) {
  TempDir dir;
  const auto tokenizer =
      MakeSentencePieceTokenizer(SmallModel(LikeLlama("bpe")));
  std::string text;
  while (text.size() < 700'000) {
    for (const std::string& line : TrainingLines()) {
      text += line + (text.size() % 5 == 0 ? "\n" : " ");
    }
  }
  WriteText(dir.File("text"), text);
  const auto header = TokenizeFile(
      **tokenizer, {.text_path = dir.File("text"), .path = dir.File("t")});
  ASSERT_TRUE(header.ok()) << header.status().ToString();
  EXPECT_EQ(header->tokenizer, (*tokenizer)->name());
  std::vector<int32_t> whole;
  ASSERT_TRUE((*tokenizer)->Encode(text, whole).ok());
  EXPECT_EQ(Tokens(dir.File("t")), whole);
}

TEST(TokenizeFile, LinesMayBeDocuments) {
  TempDir dir;
  const auto tokenizer =
      MakeSentencePieceTokenizer(SmallModel(LikeLlama("bpe")));
  WriteText(dir.File("text"), "The quick fox\r\n\r\n\nA lazy dog");
  ASSERT_TRUE(TokenizeFile(**tokenizer, {.text_path = dir.File("text"),
                                         .path = dir.File("t"),
                                         .eos_per_line = true})
                  .ok());
  std::vector<int32_t> want;
  for (const char* line : {"The quick fox", "A lazy dog"}) {
    ASSERT_TRUE((*tokenizer)->Encode(line, want).ok());
    want.push_back(2);
  }
  EXPECT_EQ(Tokens(dir.File("t")), want);
  EXPECT_TRUE(
      Fails(TokenizeFile(*MakeBytesTokenizer(), {.text_path = dir.File("text"),
                                                 .path = dir.File("t"),
                                                 .eos_per_line = true})
                .status(),
            absl::StatusCode::kInvalidArgument,
            {"bytes has no token that ends a document"}));
}

TEST(TokenizeFile, RefusesWhatHasNoText) {
  TempDir dir;
  WriteText(dir.File("text"), "");
  EXPECT_TRUE(
      Fails(TokenizeFile(*MakeBytesTokenizer(),
                         {.text_path = dir.File("text"), .path = dir.File("t")})
                .status(),
            absl::StatusCode::kInvalidArgument, {dir.File("text"), "empty"}));
}

TEST(TokenizeFile, LeavesTheTextAlone) {
  TempDir dir;
  WriteText(dir.File("text"), "hello");
  std::filesystem::create_symlink(dir.File("text"), dir.File("link"));
  for (const char* out : {"text", "link"}) {
    EXPECT_TRUE(Fails(
        TokenizeFile(*MakeBytesTokenizer(),
                     {.text_path = dir.File("text"), .path = dir.File(out)})
            .status(),
        absl::StatusCode::kInvalidArgument, {dir.File(out), "--out"}));
  }
  EXPECT_EQ(std::filesystem::file_size(dir.File("text")), 5);
}

}  // namespace
}  // namespace troupe
