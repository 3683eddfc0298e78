#include "worker/engine/carried_files.h"

#include <filesystem>
#include <map>

#include "gtest/gtest.h"
#include "storage/dataset/hugging_face/tokenizer.h"
#include "storage/dataset/sentencepiece/tokenizer.h"
#include "tests/storage/checkpoint/small_checkpoint.h"
#include "tests/storage/dataset/sentencepiece/written_model.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

constexpr char kTokenizerJson[] =
    R"({"version": "1.0", "model": {"type": "BPE", "vocab": {"a": 0},
        "merges": []}})";

using Contents = std::map<std::string, std::string>;

Contents Collect(const CarriedFilesOptions& options) {
  Contents contents;
  for (const CarriedFile& file : CollectCarriedFiles(options)) {
    EXPECT_TRUE(contents.emplace(file.name, file.bytes).second) << file.name;
  }
  return contents;
}

class CarriedFilesTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(hf_); }

  TempDir dir_;
  const std::string tokens_ = dir_.File("data.bin");
  const std::string hf_ = dir_.File("hf");
};

TEST_F(CarriedFilesTest, MayBeNone) {
  EXPECT_TRUE(Collect({.tokens = tokens_, .tokenizer = "bytes"}).empty());
  EXPECT_TRUE(Collect({.tokens = tokens_, .hf = hf_}).empty());
}

TEST_F(CarriedFilesTest, TheFirstOfEachNameIsCarried) {
  WriteText(hf_ + "/config.json", "config");
  WriteText(hf_ + "/tokenizer.model", "of the model");
  WriteText(hf_ + "/model.safetensors", "weights");
  EXPECT_EQ(Collect({.tokens = tokens_, .hf = hf_}),
            (Contents{{"config.json", "config"},
                      {"tokenizer.model", "of the model"}}));
  WriteText(tokens_ + ".model", "of the tokens");
  const Contents own = Collect({.tokens = tokens_, .hf = hf_});
  EXPECT_EQ(own, (Contents{{"config.json", "config"},
                           {"tokenizer.model", "of the tokens"}}));

  const CheckpointAttempt attempt = {dir_.path(), 50, "a"};
  ASSERT_TRUE(BeginCheckpoint(attempt).ok());
  const auto shards = WriteSmallShards(attempt, 0, 1);
  const auto checkpoint =
      CommitCheckpoint(attempt, SmallManifest(50), {*shards},
                       {{"vocab.json", "old"}, {"config.json", "old"}});
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  Contents all = own;
  all["vocab.json"] = "old";
  EXPECT_EQ(
      Collect({.tokens = tokens_, .hf = hf_, .resumed_from = *checkpoint}),
      all);
}

TEST_F(CarriedFilesTest, AModelThatDidNotMakeTheTokensIsLeftOut) {
  WriteText(tokens_ + ".model", "another");
  EXPECT_TRUE(
      Collect({.tokens = tokens_, .tokenizer = "sentencepiece:00000001"})
          .empty());
  EXPECT_TRUE(Collect({.tokens = tokens_, .tokenizer = "bytes"}).empty());
  EXPECT_TRUE(Collect({.tokens = tokens_, .resumed_from = "/no/such"})
                  .count("tokenizer.model"));
}

// Llama's directory, but tokens of another model: its ids mean other pieces.
TEST_F(CarriedFilesTest, ADirectorysTokenizerOfOtherTokensIsLeftOut) {
  const std::string model = WrittenModel({.kind = 2});
  const std::string tokenizer = SentencePieceTokenizerName(model);
  WriteText(tokens_ + ".model", model);
  WriteText(hf_ + "/config.json", "config");
  WriteText(hf_ + "/generation_config.json", R"({"eos_token_id": 0})");
  const std::string config = R"({"tokenizer_class": "LlamaTokenizer"})";
  WriteText(hf_ + "/tokenizer_config.json", config);
  WriteText(hf_ + "/tokenizer.model", WrittenModel({.kind = 2, .pad = true}));
  const CarriedFilesOptions options = {
      .tokens = tokens_, .tokenizer = tokenizer, .hf = hf_};
  const Contents others = {{"config.json", "config"},
                           {"tokenizer.model", model}};
  EXPECT_EQ(Collect(options), others);
  std::filesystem::remove(hf_ + "/tokenizer.model");
  EXPECT_EQ(Collect(options), others);
  // Its own.
  WriteText(hf_ + "/tokenizer.model", model);
  Contents own = others;
  own["tokenizer_config.json"] = config;
  own["generation_config.json"] = R"({"eos_token_id": 0})";
  EXPECT_EQ(Collect(options), own);
  // The only copy of the tokens' model.
  std::filesystem::remove(tokens_ + ".model");
  EXPECT_EQ(Collect(options), own);
}

// Tokens that a directory's tokenizer.json made: all its files go along, and
// with another directory the tokens' alone.
TEST_F(CarriedFilesTest, ATokenizerJsonIsCarriedByItsName) {
  const auto tokenizer = MakeHuggingFaceTokenizer(kTokenizerJson);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const std::string name = (*tokenizer)->name();
  WriteText(tokens_ + ".model", kTokenizerJson);
  EXPECT_EQ(Collect({.tokens = tokens_, .tokenizer = name}),
            (Contents{{"tokenizer.json", kTokenizerJson}}));
  WriteText(hf_ + "/tokenizer.json", kTokenizerJson);
  WriteText(hf_ + "/special_tokens_map.json", "{}");
  const CarriedFilesOptions options = {
      .tokens = tokens_, .tokenizer = name, .hf = hf_};
  EXPECT_EQ(Collect(options), (Contents{{"tokenizer.json", kTokenizerJson},
                                        {"special_tokens_map.json", "{}"}}));
  WriteText(hf_ + "/tokenizer.json", "another");
  EXPECT_EQ(Collect(options), (Contents{{"tokenizer.json", kTokenizerJson}}));
}

}  // namespace
}  // namespace troupe
