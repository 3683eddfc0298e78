#include "worker/model/llama_block_places.h"

#include "gtest/gtest.h"
#include "proto/plan/model.h"
#include "tests/worker/model/model_runner.h"

namespace troupe {
namespace {

TEST(LlamaBlockPlacesTest, TakeTheBytesThatThePlanCounts) {
  const ModelSpec model = LlamaModel({});
  for (const ElementType dtype : {F32, BF16}) {
    const MicroBatchShape shape = {
        .sequences = 3, .sequence_length = 7, .dtype = dtype};
    const LlamaBlockPlaces places(model, shape);
    const Unit block = (*ModelUnits(model, shape))[1];
    EXPECT_EQ(places.activation_layout.bytes(), block.activation_bytes());
    EXPECT_EQ(places.stash_layout.bytes(), block.stash_bytes());
    EXPECT_EQ(places.weight_stash_layout.bytes(), block.weight_stash_bytes());
    EXPECT_EQ(places.workspace_bytes, block.workspace_bytes());
  }
}

TEST(LlamaBlockPlacesTest, StatisticsAreF32InBf16) {
  const LlamaBlockPlaces p(
      LlamaModel({}), {.sequences = 3, .sequence_length = 7, .dtype = BF16});
  for (const TensorPlace* place : {&p.rstd_1, &p.rstd_2, &p.logsumexp}) {
    EXPECT_EQ(place->dtype, DType::kF32);
  }
  for (const TensorPlace* place :
       {&p.activation, &p.norm_1, &p.qkv, &p.attention, &p.residual, &p.norm_2,
        &p.gate_up, &p.gated, &p.d_qkv, &p.d_gate_up, &p.d_gated}) {
    EXPECT_EQ(place->dtype, DType::kBF16);
  }
  EXPECT_EQ(p.qkv.dims, (std::vector<int64_t>{3, 7, (4 + 2 * 2) * 10}));
}

TEST(LlamaDecodePlacesTest, HoldOneSequence) {
  const LlamaDecodePlaces p(LlamaModel({}), {.sequence_length = 5});
  EXPECT_EQ(p.qkv.dims, (std::vector<int64_t>{1, 5, 80}));
  EXPECT_EQ(p.gate_up.dims, (std::vector<int64_t>{1, 5, 74}));
  EXPECT_EQ(p.attention.dims, (std::vector<int64_t>{1, 5, 40}));
}

}  // namespace
}  // namespace troupe
