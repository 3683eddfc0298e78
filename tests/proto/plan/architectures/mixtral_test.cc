#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/model.h"
#include "proto/plan/slices.h"
#include "tests/proto/plan/llama_spec.h"

namespace troupe {
namespace {

using ::testing::StartsWith;

constexpr MicroBatchShape kShape = {.sequences = 3, .sequence_length = 17};

// 8x7B: 46.7 billion, of which a token meets 12.9.
TEST(ModelMixtralTest, CountsParametersAndWorkAsPublished) {
  ModelSpec model = LlamaRelative("mixtral", {.layers = 32,
                                              .hidden = 4096,
                                              .heads = 32,
                                              .kv_heads = 8,
                                              .head_dim = 128,
                                              .intermediate = 14336});
  ASSERT_TRUE(ResolveModel(model).ok());
  const auto list = ModelUnits(model, kShape);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(ParameterCount(list->units), 46702792704);
  EXPECT_EQ(ActiveParameterCount(*list), 12879925248);
  const double attention = 12.0 * 32 * 4096 * 16;
  const double embedding = 32000.0 * 4096;  // looked up, not multiplied
  EXPECT_NEAR((ModelFlopsPerToken(model, 16) - attention) / 6 + embedding,
              12879925248.0, 1e5);
}

// Three weights of all experts, which lie in a tensor for each in Hugging
// Face's files.
TEST(ModelMixtralTest, WeightsOfExpertsAreStacked) {
  ModelSpec model = LlamaRelative("mixtral", {});
  ASSERT_TRUE(ResolveModel(model).ok());
  const auto list = ModelUnits(model, kShape);
  ASSERT_TRUE(list.ok()) << list.status();
  int stacked = 0;
  for (const Parameter& parameter : list->units[2].parameters()) {
    if (parameter.dims_size() < 3) continue;
    ++stacked;
    EXPECT_EQ(WholeShape(parameter)[0], 8) << parameter.name();
    EXPECT_THAT(parameter.each_in(),
                StartsWith("model.layers.1.block_sparse_moe.experts.*.w"));
    EXPECT_THAT(parameter.name(),
                StartsWith("model.layers.1.block_sparse_moe.experts.w"));
  }
  EXPECT_EQ(stacked, 3);
}

TEST(ModelMixtralTest, RefusesMoreChoicesThanExperts) {
  ModelSpec model = LlamaRelative("mixtral", {});
  ASSERT_TRUE(ResolveModel(model).ok());
  model.set_num_experts_per_tok(9);
  EXPECT_THAT(std::string(ResolveModel(model).message()),
              StartsWith("model.num_experts_per_tok: 9 is out of range; use 1 to 8"));
  model.set_num_experts(0);
  EXPECT_THAT(std::string(ResolveModel(model).message()),
              StartsWith("model.num_experts: 0 is out of range"));
}

}  // namespace
}  // namespace troupe
