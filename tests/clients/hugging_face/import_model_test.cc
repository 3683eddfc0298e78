#include "clients/hugging_face/import_model.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "storage/checkpoint/assets.h"
#include "storage/checkpoint/tensor_reader.h"
#include "tests/clients/hugging_face/edit_weights.h"
#include "tests/clients/hugging_face/round_trip.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr char kWeights[] = "/model.safetensors";

std::string MessageOfImport(const std::string& from) {
  return std::string(
      ImportModel({.from = from, .to = FreshPath("out")}).status().message());
}

TEST(ImportModel, EveryWeightAsF32) {
  for (const char* name :
       {"llama_tiny", "llama_tied_bf16_sharded", "mistral_tiny", "qwen2_tiny",
        "qwen3_tiny", "gpt2_tiny", "gpt2_bare"}) {
    SCOPED_TRACE(name);
    int64_t last = 0;
    const auto imported = ImportModel({.from = HfFixture(name),
                                       .to = FreshPath(name),
                                       .progress = [&](int64_t done, int64_t) {
                                         EXPECT_GT(done, last);
                                         last = done;
                                         return absl::OkStatus();
                                       }});
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_EQ(last, imported->bytes);
    const auto checkpoint = TensorReader::Open(imported->checkpoint);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_EQ((*checkpoint)->manifest().step, 0);
    const auto weights = HuggingFaceWeights::Open(HfFixture(name));
    int64_t parameters = 0;
    for (const ManifestTensor& tensor : (*checkpoint)->manifest().tensors) {
      const std::vector<float> want =
          AllOf(*weights, {.name = tensor.name, .shape = tensor.shape});
      std::vector<float> got(want.size());
      ASSERT_TRUE((*checkpoint)
                      ->Read(tensor.name, StoredDType::kF32,
                             WholeTensor(tensor.shape), got.data())
                      .ok());
      EXPECT_EQ(got, want) << tensor.name;
      parameters += static_cast<int64_t>(got.size());
    }
    EXPECT_EQ(parameters, imported->parameters);
    EXPECT_TRUE(
        CarriedFilePath(imported->checkpoint, "generation_config.json").ok());
    EXPECT_TRUE(CarriedFilePath(imported->checkpoint, "config.json").ok());
  }
}

// The rows of the fixture's query_key_value: two heads of 8 each, the queries,
// keys and values of the first, then of the second.
TEST(ImportModel, PartsOfATensorAreTensors) {
  const auto imported = ImportModel(
      {.from = HfFixture("gpt_neox_tiny"), .to = FreshPath("parts")});
  ASSERT_TRUE(imported.ok()) << imported.status();
  const auto checkpoint = TensorReader::Open(imported->checkpoint);
  const auto weights = HuggingFaceWeights::Open(HfFixture("gpt_neox_tiny"));
  const std::string attention = "gpt_neox.layers.1.attention.";
  for (const bool bias : {false, true}) {
    const std::string ending = bias ? ".bias" : ".weight";
    const SafetensorsTensor* whole =
        weights->Find(attention + "query_key_value" + ending);
    ASSERT_NE(whole, nullptr);
    const std::vector<float> all = AllOf(*weights, *whole);
    const int64_t columns = bias ? 1 : 16;
    int64_t part = 0;
    for (const char* name : {"query", "key", "value"}) {
      std::vector<int64_t> shape = {16};
      if (!bias) shape.push_back(columns);
      std::vector<float> got(16 * columns), want;
      for (const int64_t head : {0, 1}) {
        const auto begin = all.begin() + (head * 3 + part) * 8 * columns;
        want.insert(want.end(), begin, begin + 8 * columns);
      }
      ASSERT_TRUE((*checkpoint)
                      ->Read(attention + name + ending, StoredDType::kF32,
                             WholeTensor(shape), got.data())
                      .ok());
      EXPECT_EQ(got, want) << name << ending;
      ++part;
    }
  }
}

// Four experts of [40, 16], one behind the other.
TEST(ImportModel, TensorsOfExpertsAreOne) {
  const auto imported = ImportModel(
      {.from = HfFixture("mixtral_tiny"), .to = FreshPath("experts")});
  ASSERT_TRUE(imported.ok()) << imported.status();
  const auto checkpoint = TensorReader::Open(imported->checkpoint);
  const auto weights = HuggingFaceWeights::Open(HfFixture("mixtral_tiny"));
  const std::string experts = "model.layers.1.block_sparse_moe.experts.";
  std::vector<float> want;
  for (const char* expert : {"0", "1", "2", "3"}) {
    const std::vector<float> one = AllOf(
        *weights, {.name = experts + expert + ".w3.weight", .shape = {40, 16}});
    want.insert(want.end(), one.begin(), one.end());
  }
  std::vector<float> got(want.size());
  ASSERT_TRUE((*checkpoint)
                  ->Read(experts + "w3.weight", StoredDType::kF32,
                         WholeTensor({4, 40, 16}), got.data())
                  .ok());
  EXPECT_EQ(got, want);
}

// A module that predicts a further token comes in, but for its copies of the
// tables; the bias that chooses experts is a weight as others are.
TEST(ImportModel, ModulesComeInWhereTheyAre) {
  const auto imported = ImportModel(
      {.from = HfFixture("deepseek_v3_tiny"), .to = FreshPath("behind")});
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->model.num_nextn_predict_layers(), 1);
  EXPECT_THAT(imported->left_out, testing::IsEmpty());
  const auto checkpoint = TensorReader::Open(imported->checkpoint);
  EXPECT_EQ((*checkpoint)->Find("model.layers.2.embed_tokens.weight"), nullptr);
  const auto weights = HuggingFaceWeights::Open(HfFixture("deepseek_v3_tiny"));
  const auto expect_read = [&](const std::string& name,
                               const std::vector<int64_t>& shape) {
    std::vector<float> got(ElementCount(shape));
    ASSERT_TRUE(
        (*checkpoint)
            ->Read(name, StoredDType::kF32, WholeTensor(shape), got.data())
            .ok());
    EXPECT_EQ(got, AllOf(*weights, {.name = name, .shape = shape})) << name;
  };
  expect_read("model.layers.1.mlp.gate.e_score_correction_bias", {8});
  expect_read("model.layers.2.eh_proj.weight", {16, 32});
  expect_read("model.layers.2.shared_head.norm.weight", {16});
}

// transformers writes the number of modules, and none of them.
TEST(ImportModel, ModulesThatAreNotThereAreNone) {
  const std::string from = CopyOfFixture("deepseek_v3_tiny");
  RawTensors tensors = ReadRawTensors(from + kWeights);
  std::erase_if(tensors, [](const auto& tensor) {
    return absl::StartsWith(tensor.first, "model.layers.2.");
  });
  WriteRawTensors(from + kWeights, tensors);
  const auto imported = ImportModel({.from = from, .to = FreshPath("out")});
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->model.num_nextn_predict_layers(), 0);
}

TEST(ImportModel, CopiesThatDifferAreRefused) {
  const std::string from = CopyOfFixture("deepseek_v3_tiny");
  RawTensors tensors = ReadRawTensors(from + kWeights);
  tensors.at("model.layers.2.shared_head.head.weight").bytes[2] ^= 1;
  WriteRawTensors(from + kWeights, tensors);
  EXPECT_THAT(MessageOfImport(from),
              HasSubstr("tensor model.layers.2.shared_head.head.weight differs "
                        "from lm_head.weight, from element 1 on"));
}

TEST(ImportModel, EndedItLeavesNothing) {
  const std::string above = FreshPath("ended");
  const std::string to = above + "/below/";
  const auto directories = [&] {
    int count = 0;  // beside the file that locks the folder
    for (const auto& entry : std::filesystem::directory_iterator(to)) {
      count += entry.is_directory();
    }
    return count;
  };
  const auto imported = ImportModel(
      {.from = HfFixture("llama_tiny"), .to = to, .progress = [&](auto, auto) {
         EXPECT_EQ(directories(), 1);
         return absl::CancelledError("enough");
       }});
  EXPECT_EQ(imported.status(), absl::CancelledError("enough"));
  EXPECT_FALSE(std::filesystem::exists(above)) << "the folders that it made";
}

TEST(ImportModel, EndedItLeavesTheFoldersThatWereThere) {
  const std::string to = FreshPath("was_there");
  std::filesystem::create_directories(to);
  const auto ends = [](auto, auto) { return absl::CancelledError("enough"); };
  const ImportOptions options = {
      .from = HfFixture("llama_tiny"), .to = to, .progress = ends};
  EXPECT_FALSE(ImportModel(options).ok());
  EXPECT_TRUE(std::filesystem::is_empty(to)) << "nor a lock";
}

// A config.json with one value in place of another.
void Change(const std::string& directory, const std::string& from,
            const std::string& to) {
  std::stringstream config;
  config << std::ifstream(directory + "/config.json").rdbuf();
  std::string text = config.str();
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  std::ofstream(directory + "/config.json") << text;
}

TEST(ImportModel, ConfigAndWeightsMustFit) {
  std::string copy = CopyOfFixture("llama_tiny");
  Change(copy, "\"mlp_bias\": false", "\"mlp_bias\": true");
  EXPECT_THAT(MessageOfImport(copy), HasSubstr("mlp.gate_proj.bias"));
  copy = CopyOfFixture("llama_tiny");
  Change(copy, "\"vocab_size\": ", "\"vocab_size\": 1");
  EXPECT_THAT(MessageOfImport(copy), HasSubstr("but config.json makes it"));
  copy = CopyOfFixture("llama_tiny");
  Change(copy, "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1");
  EXPECT_THAT(MessageOfImport(copy), HasSubstr("belongs to no model"));
}

// llama_tiny, said to be tied, with a projection that is the token table.
std::string TiedCopy() {
  const std::string copy = CopyOfFixture("llama_tiny");
  Change(copy, "\"tie_word_embeddings\": false",
         "\"tie_word_embeddings\": true");
  RawTensors tensors = ReadRawTensors(copy + kWeights);
  tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"];
  WriteRawTensors(copy + kWeights, tensors);
  return copy;
}

// Transformers 4 drops the projection, transformers 5 keeps it.
TEST(ImportModel, ATiedProjectionThatIsAnotherIsRefused) {
  const std::string copy = TiedCopy();
  EXPECT_EQ(MessageOfImport(copy), "");
  RawTensors tensors = ReadRawTensors(copy + kWeights);
  tensors["lm_head.weight"].bytes[4 * 100] ^= 1;
  WriteRawTensors(copy + kWeights, tensors);
  const std::string message = MessageOfImport(copy);
  EXPECT_THAT(message, HasSubstr("tie_word_embeddings"));
  EXPECT_THAT(message,
              HasSubstr("tensor lm_head.weight differs from "
                        "model.embed_tokens.weight, from element 100"));
  tensors["lm_head.weight"].description["shape"] = {
      1, tensors["lm_head.weight"].bytes.size() / 4};
  WriteRawTensors(copy + kWeights, tensors);
  EXPECT_THAT(MessageOfImport(copy), HasSubstr("differs from"));
}

TEST(ImportModel, ATiedTableIsFoundUnderTheProjectionsName) {
  const std::string copy = TiedCopy();
  RawTensors tensors = ReadRawTensors(copy + kWeights);
  const std::string table = "model.embed_tokens.weight";
  const RawTensor was = tensors[table];
  tensors.erase(table);
  WriteRawTensors(copy + kWeights, tensors);
  const auto imported = ImportModel({.from = copy, .to = FreshPath("out")});
  ASSERT_TRUE(imported.ok()) << imported.status();
  const auto checkpoint = TensorReader::Open(imported->checkpoint);
  std::vector<float> got(was.bytes.size() / sizeof(float));
  ASSERT_TRUE((*checkpoint)
                  ->Read(table, StoredDType::kF32,
                         WholeTensor(was.description["shape"]), got.data())
                  .ok());
  EXPECT_EQ(memcmp(got.data(), was.bytes.data(), was.bytes.size()), 0);
}

TEST(ImportModel, WhatItCannotUseIsNamed) {
  EXPECT_THAT(MessageOfImport("/nowhere"), HasSubstr("/nowhere/config.json"));
  const std::string copy = CopyOfFixture("llama_tiny");
  std::filesystem::remove(copy + "/model.safetensors");
  EXPECT_THAT(MessageOfImport(copy), HasSubstr("has neither"));
  // The weights of another model.
  std::filesystem::copy(HfFixture("gpt2_tiny") + "/model.safetensors",
                        copy + "/model.safetensors");
  EXPECT_THAT(MessageOfImport(copy), HasSubstr("has no tensor model."));
}

TEST(ImportModel, LeavesNothingBehindWhereItFails) {
  const std::string copy = CopyOfFixture("llama_tied_bf16_sharded");
  std::filesystem::resize_file(copy + "/model-00002-of-00002.safetensors", 100);
  const std::string to = FreshPath("out");
  EXPECT_FALSE(ImportModel({.from = copy, .to = to}).ok());
  EXPECT_TRUE(!std::filesystem::exists(to) || std::filesystem::is_empty(to));
}

}  // namespace
}  // namespace troupe
