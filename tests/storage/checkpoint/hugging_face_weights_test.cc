#include "storage/checkpoint/hugging_face_weights.h"

#include <cmath>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/clients/hugging_face/edit_weights.h"
#include "tests/clients/hugging_face/round_trip.h"
#include "tests/storage/checkpoint/planted_value.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

TEST(HuggingFaceWeights, OneFile) {
  const auto weights = HuggingFaceWeights::Open(HfFixture("llama_tiny"));
  ASSERT_TRUE(weights.ok()) << weights.status();
  const SafetensorsTensor* norm = weights->Find("model.norm.weight");
  ASSERT_NE(norm, nullptr);
  ASSERT_EQ(norm->shape.size(), 1);
  EXPECT_TRUE(weights->CheckShape("model.norm.weight", norm->shape).ok());
  EXPECT_EQ(weights->CheckShape("model.absent", {1}).code(),
            absl::StatusCode::kNotFound);
  EXPECT_THAT(
      std::string(weights->CheckShape("model.norm.weight", {1, 2}).message()),
      HasSubstr("but config.json makes it [1, 2]"));
}

TEST(HuggingFaceWeights, ShardsInBf16AreReadAsF32) {
  const auto weights =
      HuggingFaceWeights::Open(HfFixture("llama_tied_bf16_sharded"));
  ASSERT_TRUE(weights.ok()) << weights.status();
  const SafetensorsTensor* tensor = weights->Find("model.embed_tokens.weight");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->dtype, StoredDType::kBF16);
  const std::vector<float> all = AllOf(*weights, *tensor);
  double squares = 0;
  for (const float value : all) squares += double{value} * value;
  const double deviation = std::sqrt(squares / all.size());
  EXPECT_GT(deviation, 1e-3);  // initial weights, not noise
  EXPECT_LT(deviation, 1);
  std::vector<float> piece(7);
  ASSERT_TRUE(weights->ReadF32(tensor->name, {11, 7}, piece.data()).ok());
  for (int i = 0; i < 7; ++i) EXPECT_EQ(piece[i], all[11 + i]);
}

TEST(HuggingFaceWeights, Gpt2WithAndWithoutThePrefix) {
  for (const char* name : {"gpt2_tiny", "gpt2_bare"}) {
    const auto weights = HuggingFaceWeights::Open(HfFixture(name));
    ASSERT_TRUE(weights.ok()) << weights.status();
    EXPECT_NE(weights->Find("transformer.wte.weight"), nullptr) << name;
  }
}

TEST(HuggingFaceWeights, AnElementThatIsNoNumberIsNamed) {
  const std::string copy = CopyOfFixture("llama_tiny");
  const std::string file = copy + "/model.safetensors";
  PlantValue(file, {.tensor = "model.norm.weight", .element = 3}, NAN);
  const auto weights = HuggingFaceWeights::Open(copy);
  ASSERT_TRUE(weights.ok()) << weights.status();
  std::vector<float> values(2);
  EXPECT_TRUE(weights->ReadF32("model.norm.weight", {0, 2}, values.data()).ok())
      << "what is read has none";
  const absl::Status status =
      weights->ReadF32("model.norm.weight", {2, 2}, values.data());
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(file + ": tensor model.norm.weight is nan at [3]; "));
}

TEST(HuggingFaceWeights, AMissingShardIsNamed) {
  const std::string copy = CopyOfFixture("llama_tied_bf16_sharded");
  std::filesystem::remove(copy + "/model-00002-of-00002.safetensors");
  EXPECT_THAT(std::string(HuggingFaceWeights::Open(copy).status().message()),
              HasSubstr("model-00002-of-00002.safetensors"));
}

TEST(HuggingFaceWeights, ATruncatedShardIsNamed) {
  const std::string copy = CopyOfFixture("llama_tiny");
  const std::string file = copy + "/model.safetensors";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  const absl::Status status = HuggingFaceWeights::Open(copy).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(file));
}

TEST(HuggingFaceWeights, AnIndexThatIsNoneIsRefused) {
  const std::string copy = CopyOfFixture("llama_tied_bf16_sharded");
  for (const char* text :
       {"", "{}", "{\"weight_map\": 3}", "{\"weight_map\": {\"a\": 1}}",
        "{\"weight_map\": {\"a\": \"../b\"}}"}) {
    std::ofstream(copy + "/model.safetensors.index.json") << text;
    const absl::Status status = HuggingFaceWeights::Open(copy).status();
    EXPECT_FALSE(status.ok()) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("index.json")) << text;
  }
}

std::string MessageOf(const std::string& directory) {
  return std::string(HuggingFaceWeights::Open(directory).status().message());
}

// Of an earlier save_pretrained, whose shards may be there or not.
TEST(HuggingFaceWeights, AnIndexBesideASingleFileIsRefused) {
  const std::string copy = CopyOfFixture("llama_tied_bf16_sharded");
  std::filesystem::copy(HfFixture("llama_tiny") + "/model.safetensors", copy);
  for (const bool shards : {true, false}) {
    EXPECT_THAT(MessageOf(copy), HasSubstr("has both model.safetensors and "
                                           "model.safetensors.index.json"));
    if (!shards) break;
    std::filesystem::remove(copy + "/model-00001-of-00002.safetensors");
    std::filesystem::remove(copy + "/model-00002-of-00002.safetensors");
  }
  // An index of the single file.
  std::ofstream(copy + "/model.safetensors.index.json")
      << R"({"weight_map": {"model.norm.weight": "model.safetensors"}})";
  EXPECT_EQ(MessageOf(copy), "");
}

TEST(HuggingFaceWeights, ATensorInTwoFilesIsRefused) {
  const std::string copy = CopyOfFixture("llama_tied_bf16_sharded");
  const std::string first = copy + "/model-00001-of-00002.safetensors";
  const std::string second = copy + "/model-00002-of-00002.safetensors";
  RawTensors tensors = ReadRawTensors(second);
  const auto twice = *ReadRawTensors(first).begin();
  tensors.insert(twice);
  WriteRawTensors(second, tensors);
  EXPECT_EQ(MessageOf(copy), absl::StrCat(second, ": tensor ", twice.first,
                                          " is also in ", first));
}

TEST(HuggingFaceWeights, IndexAndFilesMustAgree) {
  const std::string copy = CopyOfFixture("llama_tied_bf16_sharded");
  const std::string first = copy + "/model-00001-of-00002.safetensors";
  const std::string second = copy + "/model-00002-of-00002.safetensors";
  RawTensors from = ReadRawTensors(first);
  RawTensors to = ReadRawTensors(second);
  const auto moved = *from.begin();
  from.erase(moved.first);
  WriteRawTensors(first, from);
  EXPECT_THAT(MessageOf(copy), HasSubstr("weight_map: tensor " + moved.first +
                                         " is not in model-00001-of-00002"));
  to.insert(moved);
  WriteRawTensors(second, to);
  EXPECT_THAT(MessageOf(copy), HasSubstr("but in " + second));
}

TEST(HuggingFaceWeights, PickledWeightsAreExplained) {
  const std::string copy = CopyOfFixture("llama_tiny");
  std::filesystem::rename(copy + "/model.safetensors",
                          copy + "/pytorch_model.bin");
  EXPECT_THAT(std::string(HuggingFaceWeights::Open(copy).status().message()),
              HasSubstr("save_pretrained"));
}

}  // namespace
}  // namespace troupe
