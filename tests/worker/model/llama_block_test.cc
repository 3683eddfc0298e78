#include <algorithm>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/model/model_runner.h"
#include "tests/worker/model/numeric.h"
#include "tests/worker/model/unit_harness.h"

namespace troupe {
namespace {

// Rows x width fills its cache lines, so that a buffer holds nothing else.
constexpr MicroBatchShape kShape = {.sequences = 2, .sequence_length = 4};
constexpr int kWidth = 6;
constexpr int kBlock = 2;  // layer 1

struct Case {
  double dropout;
  bool bias;
  const char* scaling;
};

ModelSpec Model(const Case& c) {
  ModelSpec model = LlamaModel({.hidden = kWidth,
                                .heads = 4,
                                .kv_heads = 2,
                                .head_dim = 4,
                                .intermediate = 7,
                                .vocab = 11,
                                .positions = 8,
                                .bias = c.bias});
  model.set_initializer_range(0.4);
  if (c.scaling == std::string("yarn")) {
    model.mutable_rope_scaling()->set_type("yarn");
    model.mutable_rope_scaling()->set_factor(2);
    CHECK_OK(ResolveModel(model));
  }
  return model;
}

std::vector<float> Copy(const DeviceMemory& memory) {
  return {memory.span().begin(), memory.span().end()};
}

class LlamaBlockTest : public testing::TestWithParam<Case> {
 protected:
  LlamaBlockTest()
      : block_(Model(GetParam()), kBlock,
               {.shape = kShape, .dropout = GetParam().dropout, .seed = 4}) {}

  const MicroBatchContext context_ = {
      .step = 5, .first_sample = 6, .training = true};
  UnitHarness block_;
};

TEST_P(LlamaBlockTest, BackwardAgreesWithFiniteDifferences) {
  block_.Forward(context_);
  block_.unit->BackwardInput(*block_.device, context_, block_.Buffers());
  block_.unit->BackwardWeight(*block_.device, context_, block_.Buffers());
  const auto loss = [&] {
    block_.Forward(context_);
    return Dot(block_.output.span(), block_.d_output.span());
  };
  EXPECT_LT(GradientError(loss, block_.input.span(), block_.d_input.span(),
                          /*delta=*/3e-3f),
            2e-3);
  EXPECT_LT(GradientError(loss, block_.parameters.span(),
                          block_.gradients.span(), /*delta=*/3e-3f),
            2e-3);
}

TEST_P(LlamaBlockTest, ARepeatedForwardIsTheSameBitForBit) {
  block_.Forward(context_);
  const std::vector<float> output = Copy(block_.output);
  const std::vector<float> stash = Copy(block_.stash);
  block_.Forward({.step = 6, .training = true});
  block_.Forward(context_);
  EXPECT_EQ(Copy(block_.output), output);
  EXPECT_TRUE(std::equal(
      stash.begin(), stash.end(), block_.stash.span().begin(),
      [](float a, float b) { return a == b || (a != a && b != b); }));
}

TEST_P(LlamaBlockTest, KeepsTheOutputsGradientForWhoeverReadsItNext) {
  const std::vector<float> d_output = Copy(block_.d_output);
  const std::vector<float> input = Copy(block_.input);
  block_.Forward(context_);
  block_.unit->BackwardInput(*block_.device, context_, block_.Buffers());
  block_.unit->BackwardWeight(*block_.device, context_, block_.Buffers());
  EXPECT_EQ(Copy(block_.d_output), d_output);
  EXPECT_EQ(Copy(block_.input), input);
}

TEST_P(LlamaBlockTest, DecodingInPiecesIsTheForwardOfTheWhole) {
  block_.Forward({.training = false});
  constexpr int64_t kPositions = 8;
  DeviceMemory cache(*block_.device, block_.unit->CacheBytes(kPositions));
  DeviceMemory workspace(*block_.device, block_.unit->DecodeWorkspaceBytes());
  std::vector<float> output(4 * kWidth);
  for (const auto& [position, count] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 2}, {2, 1}, {3, 1}}) {
    block_.unit->Decode(*block_.device, kPositions,
                        {.position = position,
                         .count = count,
                         .input = block_.input.floats() + kWidth * position,
                         .output = output.data() + kWidth * position,
                         .cache = cache.get(),
                         .workspace = workspace.get(),
                         .parameters = block_.parameters.get()});
  }
  EXPECT_LT(RelativeError(output, block_.output.span().subspan(0, 24)), 1e-5);
}

// Of two key-value heads, not of the four of queries.
TEST_P(LlamaBlockTest, CachesKeysAndValuesOfTheirOwnHeads) {
  EXPECT_EQ(block_.unit->CacheBytes(8), 8 * 2 * (2 * 4) * 4);
}

INSTANTIATE_TEST_SUITE_P(Variants, LlamaBlockTest,
                         testing::Values(Case{0, false, "none"},
                                         Case{0.3, false, "yarn"},
                                         Case{0.3, true, "none"}));

}  // namespace
}  // namespace troupe
