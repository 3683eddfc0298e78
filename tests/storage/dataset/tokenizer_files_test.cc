#include "storage/dataset/tokenizer_files.h"

#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "proto/base/crc32c.h"
#include "storage/dataset/sentencepiece/tokenizer.h"
#include "tests/storage/dataset/sentencepiece/written_model.h"

namespace troupe {
namespace {

constexpr char kLlama[] = R"({"tokenizer_class": "LlamaTokenizer"})";

class TokenizerFilesTest : public testing::Test {
 protected:
  bool Belong(const TokenizerFiles& files) const {
    return BelongToTokens(files, origin_);
  }

  const std::string model_ = WrittenModel({.kind = 2});
  const std::string other_ = WrittenModel({.kind = 2, .pad = true});
  TokensOrigin origin_ = {.tokenizer = SentencePieceTokenizerName(model_),
                          .model = model_};
};

TEST_F(TokenizerFilesTest, AModelMustBeThatOfTheTokens) {
  EXPECT_TRUE(Belong({.model = model_, .config = kLlama}));
  EXPECT_FALSE(Belong({.model = other_, .config = kLlama}));
  // A config alone says nothing about the pieces.
  EXPECT_FALSE(Belong({.config = kLlama}));
  EXPECT_FALSE(Belong({.model = model_}));
  EXPECT_FALSE(Belong({}));
}

TEST_F(TokenizerFilesTest, AConfigMustReadTheModel) {
  const auto belongs = [&](const char* config) {
    return Belong({.model = model_, .config = config});
  };
  EXPECT_FALSE(belongs(R"({"tokenizer_class": "GPT2Tokenizer"})"));
  EXPECT_FALSE(belongs("{}"));
  EXPECT_FALSE(belongs("no JSON"));
  EXPECT_TRUE(belongs(R"({"tokenizer_class": "LlamaTokenizerFast",
      "added_tokens_decoder": {"2": {"content": "</s>"},
                               "9999": {"content": "<added>"}}})"));
  EXPECT_FALSE(belongs(R"({"tokenizer_class": "LlamaTokenizerFast",
      "added_tokens_decoder": {"2": {"content": "<|end|>"}}})"));
}

TEST_F(TokenizerFilesTest, ATokenizerJsonMustHaveThePieces) {
  EXPECT_FALSE(Belong({.model = model_, .tokenizer = "no JSON"}));
  EXPECT_FALSE(Belong(
      {.model = model_, .tokenizer = R"({"model": {"vocab": {"a": 0}}})"}));
  EXPECT_FALSE(
      Belong({.model = model_, .tokenizer = R"({"model": {"vocab": 7}})"}));
}

TEST_F(TokenizerFilesTest, TheirOwnModelMayBeThatOfTheTokens) {
  origin_.model.clear();
  EXPECT_TRUE(Belong({.model = model_, .config = kLlama}));
  EXPECT_FALSE(Belong({.model = other_, .config = kLlama}));
}

// A tokenizer.json that made the tokens must be there as it is.
TEST_F(TokenizerFilesTest, ATokenizerJsonMustBeThatOfTheTokens) {
  const std::string json = R"({"model": {}})";
  origin_ = {.tokenizer = absl::StrFormat("hf:%08x:none", Crc32c(json))};
  EXPECT_TRUE(Belong({.tokenizer = json}));
  EXPECT_TRUE(Belong({.model = other_, .tokenizer = json, .config = "{}"}));
  EXPECT_FALSE(Belong({.tokenizer = json + " "}));
  EXPECT_FALSE(Belong({.model = model_}));
  EXPECT_FALSE(Belong({}));
}

TEST_F(TokenizerFilesTest, OtherTokens) {
  origin_ = {.tokenizer = "bytes"};
  EXPECT_FALSE(Belong({.model = model_, .config = kLlama}));
  origin_ = {};  // of Megatron-LM: not known
  EXPECT_TRUE(Belong({.model = model_, .config = kLlama}));
  EXPECT_TRUE(Belong({}));
}

TEST(IsTokenizerFile, TheModelsOwnConfigIsNone) {
  EXPECT_TRUE(IsTokenizerFile("generation_config.json"));
  EXPECT_TRUE(IsTokenizerFile("vocab.json"));
  EXPECT_FALSE(IsTokenizerFile("config.json"));
  EXPECT_FALSE(IsTokenizerFile("chat_template.jinja"));
}

}  // namespace
}  // namespace troupe
