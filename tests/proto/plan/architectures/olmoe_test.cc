#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/model.h"
#include "tests/proto/plan/llama_spec.h"

namespace troupe {
namespace {

using ::testing::StartsWith;

ModelSpec Olmoe(const LlamaSize& size) {
  ModelSpec model = LlamaRelative("olmoe", size);
  model.clear_head_dim();
  return model;
}

// OLMoE-1B-7B: 6.9 billion, of which a token meets 1.3.
TEST(ModelOlmoeTest, CountsTheParametersAsPublished) {
  ModelSpec model = Olmoe({.layers = 16,
                           .hidden = 2048,
                           .heads = 16,
                           .kv_heads = 16,
                           .intermediate = 1024});
  model.set_vocab_size(50304);
  ASSERT_TRUE(ResolveModel(model).ok());
  const auto list = ModelUnits(model, {.sequences = 3, .sequence_length = 17});
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(ParameterCount(list->units), 6919161856);
  EXPECT_EQ(ActiveParameterCount(*list), 1282017280);
}

TEST(ModelOlmoeTest, DefaultsAreTransformers) {
  ModelSpec model = Olmoe({.hidden = 16, .heads = 4, .kv_heads = 2});
  model.clear_rms_norm_eps();
  ASSERT_TRUE(ResolveModel(model).ok());
  EXPECT_EQ(model.num_experts(), 64);
  EXPECT_EQ(model.num_experts_per_tok(), 8);
  EXPECT_EQ(model.head_dim(), 4);
  EXPECT_FALSE(model.norm_topk_prob());
  EXPECT_EQ(model.rms_norm_eps(), 1e-5);
}

TEST(ModelOlmoeTest, HeadsAreOfTheHiddenSize) {
  ModelSpec model = Olmoe({.hidden = 16, .heads = 4});
  model.set_head_dim(6);
  EXPECT_THAT(std::string(ResolveModel(model).message()),
              StartsWith("model.head_dim: 6 columns of 4 heads are not "
                         "model.hidden_size 16"));
}

}  // namespace
}  // namespace troupe
