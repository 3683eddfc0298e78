#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/model.h"
#include "tests/proto/plan/llama_spec.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

constexpr MicroBatchShape kShape = {.sequences = 3, .sequence_length = 17};

TEST(ModelQwen2Test, CountsTheParametersAsPublished) {
  ModelSpec model = LlamaRelative("qwen2", {.layers = 24,
                                            .hidden = 896,
                                            .heads = 14,
                                            .kv_heads = 2,
                                            .head_dim = 64,
                                            .intermediate = 4864});
  model.set_vocab_size(151936);
  model.set_tie_word_embeddings(true);
  const auto list = ModelUnits(model, kShape);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(ParameterCount(list->units), 494032768);
}

TEST(ModelQwen2Test, OnlyQueriesKeysAndValuesHaveBiases) {
  const auto list = ModelUnits(LlamaRelative("qwen2", {}), kShape);
  ASSERT_TRUE(list.ok()) << list.status();
  std::vector<std::string> biases;
  for (const Parameter& parameter : list->units[2].parameters()) {
    if (parameter.dims_size() == 1) biases.push_back(parameter.name());
  }
  const std::string p = "model.layers.1.";
  EXPECT_THAT(
      biases,
      ElementsAre(p + "input_layernorm.weight", p + "self_attn.q_proj.bias",
                  p + "self_attn.k_proj.bias", p + "self_attn.v_proj.bias",
                  p + "post_attention_layernorm.weight"));
}

TEST(ModelQwen2Test, RefusesFieldsOfLlama) {
  ModelSpec model = LlamaRelative("qwen2", {});
  model.set_attention_bias(true);
  EXPECT_THAT(
      std::string(ResolveModel(model).message()),
      StartsWith("model.attention_bias: is a field of gpt_neox, llama"));
}

}  // namespace
}  // namespace troupe
