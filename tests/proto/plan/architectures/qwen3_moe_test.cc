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

TEST(ModelQwen3MoeTest, CountsTheParametersAsPublished) {
  ModelSpec model = LlamaRelative("qwen3_moe", {.layers = 48,
                                                .hidden = 2048,
                                                .heads = 32,
                                                .kv_heads = 4,
                                                .head_dim = 128,
                                                .intermediate = 6144});
  model.set_vocab_size(151936);
  ASSERT_TRUE(ResolveModel(model).ok());
  const auto list = ModelUnits(model, kShape);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(ParameterCount(list->units), 30532122624);
}

std::vector<bool> HaveExperts(const ModelSpec& model) {
  const auto list = ModelUnits(model, kShape);
  EXPECT_TRUE(list.ok()) << list.status();
  std::vector<bool> have;
  for (const Unit& unit : list->units) {
    if (unit.kind() != Unit::BLOCK) continue;
    have.push_back(false);
    for (const Parameter& parameter : unit.parameters()) {
      if (parameter.dims_size() == 3) have.back() = true;
    }
  }
  return have;
}

TEST(ModelQwen3MoeTest, SomeLayersHaveNoExperts) {
  ModelSpec model = LlamaRelative("qwen3_moe", {.layers = 4});
  ASSERT_TRUE(ResolveModel(model).ok());
  EXPECT_THAT(HaveExperts(model), ElementsAre(true, true, true, true));
  model.add_mlp_only_layers(2);
  EXPECT_THAT(HaveExperts(model), ElementsAre(true, true, false, true));
  model.set_decoder_sparse_step(2);
  EXPECT_THAT(HaveExperts(model), ElementsAre(false, true, false, true));
  model.add_mlp_only_layers(4);
  EXPECT_THAT(std::string(ResolveModel(model).message()),
              StartsWith("model.mlp_only_layers: 4 "));
}

}  // namespace
}  // namespace troupe
