#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/model.h"
#include "proto/plan/slices.h"
#include "tests/proto/plan/llama_spec.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

constexpr MicroBatchShape kShape = {.sequences = 3, .sequence_length = 17};

TEST(ModelQwen3Test, CountsTheParametersAsPublished) {
  ModelSpec model = LlamaRelative("qwen3", {.layers = 28,
                                            .hidden = 1024,
                                            .heads = 16,
                                            .kv_heads = 8,
                                            .head_dim = 128,
                                            .intermediate = 3072});
  model.set_vocab_size(151936);
  model.set_tie_word_embeddings(true);
  const auto list = ModelUnits(model, kShape);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(ParameterCount(list->units), 596049920);
}

// One weight for all heads, of one head's width.
TEST(ModelQwen3Test, HeadsOfQueriesAndKeysHaveNorms) {
  const auto list = ModelUnits(LlamaRelative("qwen3", {}), kShape);
  ASSERT_TRUE(list.ok()) << list.status();
  std::vector<std::string> vectors;
  for (const Parameter& parameter : list->units[2].parameters()) {
    if (parameter.dims_size() > 1) continue;
    EXPECT_EQ(parameter.init(), Parameter::ONES) << parameter.name();
    vectors.push_back(parameter.name() + " " +
                      std::to_string(WholeShape(parameter)[0]));
  }
  const std::string p = "model.layers.1.";
  EXPECT_THAT(vectors, ElementsAre(p + "input_layernorm.weight 12",
                                   p + "self_attn.q_norm.weight 8",
                                   p + "self_attn.k_norm.weight 8",
                                   p + "post_attention_layernorm.weight 12"));
}

TEST(ModelQwen3Test, HeadsAreOf128ColumnsUnlessSaidOtherwise) {
  ModelSpec model = LlamaRelative("qwen3", {});
  model.clear_head_dim();
  ASSERT_TRUE(ResolveModel(model).ok());
  EXPECT_EQ(model.head_dim(), 128);
  model.set_head_dim(7);
  EXPECT_THAT(std::string(ResolveModel(model).message()),
              StartsWith("model.head_dim: 7 is odd"));
}

}  // namespace
}  // namespace troupe
