#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/model/model_runner.h"
#include "tests/worker/model/numeric.h"
#include "tests/worker/model/unit_harness.h"

namespace troupe {
namespace {

// Rows x width fills its cache lines, so that a buffer holds nothing else.
constexpr MicroBatchShape kShape = {.sequences = 2, .sequence_length = 4};
constexpr int kBlock = 2;  // layer 1

ModelSpec Model() {
  ModelSpec model = Gpt2Model({.hidden = 6,
                               .heads = 2,
                               .intermediate = 7,
                               .vocab = 11,
                               .positions = 8});
  model.set_initializer_range(0.4);
  return model;
}

std::vector<float> Copy(const DeviceMemory& memory) {
  return {memory.span().begin(), memory.span().end()};
}

class Gpt2BlockTest : public testing::TestWithParam<double> {
 protected:
  Gpt2BlockTest()
      : block_(Model(), kBlock,
               {.shape = kShape, .dropout = GetParam(), .seed = 4}) {}

  const MicroBatchContext context_ = {
      .step = 5, .first_sample = 6, .training = true};
  UnitHarness block_;
};

TEST_P(Gpt2BlockTest, BackwardAgreesWithFiniteDifferences) {
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

TEST_P(Gpt2BlockTest, ARepeatedForwardIsTheSameBitForBit) {
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

TEST_P(Gpt2BlockTest, KeepsTheOutputsGradientForWhoeverReadsItNext) {
  const std::vector<float> d_output = Copy(block_.d_output);
  const std::vector<float> input = Copy(block_.input);
  block_.Forward(context_);
  block_.unit->BackwardInput(*block_.device, context_, block_.Buffers());
  block_.unit->BackwardWeight(*block_.device, context_, block_.Buffers());
  EXPECT_EQ(Copy(block_.d_output), d_output);
  EXPECT_EQ(Copy(block_.input), input);
}

TEST_P(Gpt2BlockTest, DecodingInPiecesIsTheForwardOfTheWhole) {
  block_.Forward({.training = false});
  constexpr int64_t kPositions = 8;
  DeviceMemory cache(*block_.device, block_.unit->CacheBytes(kPositions));
  DeviceMemory workspace(*block_.device, block_.unit->DecodeWorkspaceBytes());
  std::vector<float> output(4 * 6);
  for (const auto& [position, count] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 2}, {2, 1}, {3, 1}}) {
    block_.unit->Decode(*block_.device, kPositions,
                        {.position = position,
                         .count = count,
                         .input = block_.input.floats() + 6 * position,
                         .output = output.data() + 6 * position,
                         .cache = cache.get(),
                         .workspace = workspace.get(),
                         .parameters = block_.parameters.get()});
  }
  EXPECT_LT(RelativeError(output, block_.output.span().subspan(0, 24)), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutDropout, Gpt2BlockTest,
                         testing::Values(0.0, 0.3));

}  // namespace
}  // namespace troupe
