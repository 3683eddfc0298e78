#include "clients/hugging_face/expand_model.h"

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/clients/hugging_face/edit_weights.h"
#include "tests/clients/hugging_face/round_trip.h"

namespace troupe {
namespace {

using Use = HuggingFaceWeightsUse;
using ::testing::HasSubstr;

TEST(ExpandHuggingFaceModel, FillsInWhatTheConfigSays) {
  ModelSpec model;
  model.set_hf("tests/oracle/hf/llama_tiny");
  ASSERT_TRUE(ExpandHuggingFaceModel(Use::kTrained, model).ok());
  EXPECT_EQ(model.architecture(), "llama");
  EXPECT_GT(model.hidden_size(), 0);
  EXPECT_EQ(model.hf(), "tests/oracle/hf/llama_tiny");
}

TEST(ExpandHuggingFaceModel, LeavesOthersAlone) {
  ModelSpec model;
  model.set_hidden_size(64);
  ASSERT_TRUE(ExpandHuggingFaceModel(Use::kTrained, model).ok());
  EXPECT_EQ(model.ByteSizeLong(), 2);
}

TEST(ExpandHuggingFaceModel, NothingMayStandBesideIt) {
  ModelSpec model;
  model.set_hf("tests/oracle/hf/llama_tiny");
  model.set_vocab_size(300);
  EXPECT_EQ(ExpandHuggingFaceModel(Use::kTrained, model).message(),
            "model.vocab_size: the config.json of model.hf says it; leave it "
            "out");
}

TEST(ExpandHuggingFaceModel, AnAbsentDirectoryIsNamed) {
  ModelSpec model;
  model.set_hf("/nowhere");
  const absl::Status status = ExpandHuggingFaceModel(Use::kTrained, model);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "model.hf: /nowhere/config.json: open: ENOENT: no such file or "
            "directory; give a Hugging Face model's directory");
}

// Modules are trained where the job says so.
TEST(ExpandHuggingFaceModel, ModulesAreAnOption) {
  ModelSpec named;
  named.set_hf("tests/oracle/hf/deepseek_v3_tiny");
  ModelSpec model = named;
  ASSERT_TRUE(ExpandHuggingFaceModel(Use::kTrained, model).ok());
  EXPECT_EQ(model.num_nextn_predict_layers(), 0);
  model = named;
  model.set_num_nextn_predict_layers(1);
  model.set_mtp_coefficient(0.1);
  ASSERT_TRUE(ExpandHuggingFaceModel(Use::kTrained, model).ok());
  EXPECT_EQ(model.num_nextn_predict_layers(), 1);
  EXPECT_EQ(model.mtp_coefficient(), 0.1);
  model = named;
  model.set_num_nextn_predict_layers(2);
  EXPECT_EQ(ExpandHuggingFaceModel(Use::kTrained, model).message(),
            "model.num_nextn_predict_layers: 2 modules are to be trained, and "
            "the files of model.hf have 1; use 1");
}

// As an import does.
TEST(ExpandHuggingFaceModel, WeightsThatAreLeftOverAreRefused) {
  const std::string copy = CopyOfFixture("llama_tiny");
  const std::string weights = copy + "/model.safetensors";
  RawTensors tensors = ReadRawTensors(weights);
  const std::string bias = "model.layers.0.self_attn.q_proj.bias";
  tensors[bias] = tensors["model.norm.weight"];
  WriteRawTensors(weights, tensors);
  ModelSpec named;
  named.set_hf(copy);
  for (const Use use : {Use::kTrained, Use::kIfThere}) {
    ModelSpec model = named;
    const absl::Status status = ExpandHuggingFaceModel(use, model);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("model.hf: " + copy + ": tensor " + bias +
                          " belongs to no model"));
  }
  // A checkpoint's are trained on.
  ModelSpec model = named;
  EXPECT_TRUE(ExpandHuggingFaceModel(Use::kUnused, model).ok());
}

// For a plan only headers are read: tied tables of real models have gigabytes.
TEST(ExpandHuggingFaceModel, OnlyARunComparesTiedTables) {
  const std::string copy = CopyOfFixture("qwen2_tiny");
  const std::string weights = copy + "/model.safetensors";
  RawTensors tensors = ReadRawTensors(weights);
  RawTensor projection = tensors.at("model.embed_tokens.weight");
  projection.bytes[0] ^= 1;
  tensors["lm_head.weight"] = projection;
  WriteRawTensors(weights, tensors);
  ModelSpec named;
  named.set_hf(copy);
  ModelSpec model = named;
  EXPECT_TRUE(ExpandHuggingFaceModel(Use::kIfThere, model).ok());
  model = named;
  EXPECT_THAT(
      std::string(ExpandHuggingFaceModel(Use::kTrained, model).message()),
      HasSubstr("tensor lm_head.weight differs from model.embed_tokens"));
}

TEST(ExpandHuggingFaceModel, APlanNeedsNoWeights) {
  const std::string copy = CopyOfFixture("llama_tiny");
  std::filesystem::remove(copy + "/model.safetensors");
  ModelSpec named;
  named.set_hf(copy);
  ModelSpec model = named;
  EXPECT_TRUE(ExpandHuggingFaceModel(Use::kIfThere, model).ok());
  model = named;
  EXPECT_THAT(
      std::string(ExpandHuggingFaceModel(Use::kTrained, model).message()),
      HasSubstr("has neither model.safetensors nor"));
}

}  // namespace
}  // namespace troupe
