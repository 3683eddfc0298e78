#include "worker/engine/end_of_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/dataset/bytes_tokenizer.h"
#include "storage/dataset/sentencepiece/tokenizer.h"
#include "tests/storage/checkpoint/small_checkpoint.h"
#include "tests/storage/dataset/sentencepiece/written_model.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class EndOfText : public testing::Test {
 protected:
  EndOfText() { Model("llama", 32000); }

  void Model(const char* architecture, int vocab_size) {
    model_.set_architecture(architecture);
    model_.set_vocab_size(vocab_size);
  }
  std::set<int32_t> Tokens(const std::string& generation_config,
                           const std::string& config,
                           const Tokenizer* tokenizer = nullptr) const {
    const auto tokens = EndOfTextTokens({.generation_config = generation_config,
                                         .config = config,
                                         .model = model_,
                                         .tokenizer = tokenizer});
    EXPECT_TRUE(tokens.ok()) << tokens.status();
    return tokens.value_or(std::set<int32_t>());
  }

  ModelSpec model_;
};

TEST_F(EndOfText, TheGenerationConfigComesFirst) {
  EXPECT_THAT(Tokens(R"({"eos_token_id": [7, 9]})", R"({"eos_token_id": 2})"),
              ElementsAre(7, 9));
  EXPECT_THAT(Tokens(R"({"eos_token_id": 7})", ""), ElementsAre(7));
  EXPECT_THAT(Tokens("{}", R"({"eos_token_id": [3, 2]})"), ElementsAre(2, 3));
  EXPECT_THAT(Tokens("", R"({"eos_token_id": 2, "x": Infinity})"),
              ElementsAre(2));
}

// As transformers does, for a key that is absent; null says that there is none.
TEST_F(EndOfText, AModelTypeHasADefault) {
  EXPECT_THAT(Tokens("", "{}"), ElementsAre(2));
  EXPECT_THAT(Tokens("", R"({"eos_token_id": null})"), IsEmpty());
  Model("qwen2", 151936);
  EXPECT_THAT(Tokens("", "{}"), IsEmpty());
  Model("gpt2", 50257);
  EXPECT_THAT(Tokens("", "{}"), ElementsAre(50256));
}

// Tokens of llm.c or Megatron-LM come without a tokenizer.
TEST_F(EndOfText, TheVocabularyOfGpt2IsKnown) {
  Model("gpt2", 50304);
  EXPECT_THAT(Tokens("", ""), ElementsAre(50256));
  EXPECT_THAT(Tokens("", "", MakeBytesTokenizer().get()), IsEmpty());
  Model("gpt2", 32000);
  EXPECT_THAT(Tokens("", ""), IsEmpty());
  Model("llama", 50304);
  EXPECT_THAT(Tokens("", ""), IsEmpty());
}

TEST_F(EndOfText, WhatIsOutsideOfTheVocabularyNeverComes) {
  Model("gpt2", 97);
  EXPECT_THAT(Tokens("", R"({"eos_token_id": [-1, 50256, 96]})"),
              ElementsAre(96));
}

TEST_F(EndOfText, WhatIsNoIdIsNamed) {
  for (const char* wrong :
       {R"({"eos_token_id": "</s>"})", R"({"eos_token_id": [2, 2.5]})"}) {
    EXPECT_TRUE(Fails(
        EndOfTextTokens({.generation_config = wrong, .model = model_}).status(),
        absl::StatusCode::kInvalidArgument,
        {"generation_config.json: eos_token_id: is neither"}));
  }
  EXPECT_TRUE(Fails(EndOfTextTokens({.config = "{", .model = model_}).status(),
                    absl::StatusCode::kInvalidArgument,
                    {"config.json: not JSON at byte 2"}));
}

// Pythia, say, ends texts at id 0, which is <unk> of the tokens' pieces.
TEST_F(EndOfText, AnothersConfigsDoNotCount) {
  const std::string pieces = WrittenModel({.kind = 2});
  const auto tokenizer = MakeSentencePieceTokenizer(pieces);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto ends = [&](const std::string& name, const Tokenizer* known,
                        std::vector<CarriedFile> carried) {
    carried.push_back({"tokenizer.model", pieces});
    carried.push_back({"config.json", R"({"eos_token_id": 0})"});
    carried.push_back({"generation_config.json", R"({"eos_token_id": 5})"});
    const TempDir dir;
    Manifest manifest = SmallManifest(50);
    manifest.tokenizer = name;
    const CheckpointAttempt attempt = {dir.path(), 50, "a"};
    EXPECT_TRUE(BeginCheckpoint(attempt).ok());
    const auto shards = WriteSmallShards(attempt, 0, 1);
    const auto checkpoint =
        CommitCheckpoint(attempt, manifest, {*shards}, carried);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    const auto tokens = EndOfTextTokensOf(
        *checkpoint, *ReadManifest(*checkpoint), model_, known);
    EXPECT_TRUE(tokens.ok()) << tokens.status();
    return tokens.value_or(std::set<int32_t>());
  };
  const std::string name = (*tokenizer)->name();
  EXPECT_THAT(ends(name, tokenizer->get(), {}), ElementsAre(2));
  EXPECT_THAT(ends(name, tokenizer->get(),
                   {{"tokenizer.json", R"({"model": {"vocab": {"a": 0}}})"}}),
              ElementsAre(2));
  EXPECT_THAT(ends("bytes", MakeBytesTokenizer().get(), {}), IsEmpty());
  // Where they belong to the tokens, or nothing is known of these.
  const CarriedFile config = {"tokenizer_config.json",
                              R"({"tokenizer_class": "LlamaTokenizer"})"};
  EXPECT_THAT(ends(name, tokenizer->get(), {config}), ElementsAre(2, 5));
  EXPECT_THAT(ends("", nullptr, {}), ElementsAre(5));
}

}  // namespace
}  // namespace troupe
