#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/model/model_runner.h"
#include "tests/worker/model/numeric.h"
#include "tests/worker/model/unit_harness.h"

namespace troupe {
namespace {

constexpr int64_t kWidth = 4;
constexpr int64_t kRows = 8;
constexpr MicroBatchShape kShape = {.sequences = 2, .sequence_length = 4};

class HeadUnitTest : public testing::TestWithParam<bool> {
 protected:
  HeadUnitTest() : head_(Model(), 3, {.shape = kShape}) {
    head_.batch.resize(kRows, 0);
    for (const int32_t target : {3, 9, -1, 0, 10, 3, -1, 5}) {
      head_.batch.push_back(target);
    }
  }

  static ModelSpec Model() {
    ModelSpec model = Gpt2Model({.hidden = kWidth,
                                 .heads = 2,
                                 .vocab = 11,
                                 .positions = 6,
                                 .tied = GetParam()});
    model.set_initializer_range(0.5);
    return model;
  }

  UnitHarness head_;
};

TEST_P(HeadUnitTest, BackwardAgreesWithFiniteDifferences) {
  const MicroBatchContext context = {
      .step = 1, .training = true, .gradient_scale = 0.125};
  head_.Forward(context);
  EXPECT_EQ(head_.scalars[1], 6);
  head_.unit->BackwardInput(*head_.device, context, head_.Buffers());
  head_.unit->BackwardWeight(*head_.device, context, head_.Buffers());
  const auto loss = [&] {
    head_.scalars[0] = 0;
    head_.Forward({.training = false});
    return 0.125 * head_.scalars[0];
  };
  EXPECT_LT(GradientError(loss, head_.input.span(), head_.d_input.span()),
            2e-3);
  EXPECT_LT(
      GradientError(loss, head_.parameters.span(), head_.gradients.span()),
      2e-3);
  EXPECT_LT(GradientError(loss, head_.tied_parameters.span(),
                          head_.tied_gradients.span()),
            2e-3)
      << "a head of its own must not touch the embedding";
}

TEST_P(HeadUnitTest, TheLossAddsUpOverMicroBatches) {
  head_.Forward({.training = false});
  const double once = head_.scalars[0];
  head_.Forward({.training = false});
  EXPECT_DOUBLE_EQ(head_.scalars[0], 2 * once);
  EXPECT_EQ(head_.scalars[1], 12);
}

TEST_P(HeadUnitTest, DecodeGivesTheLogitsOfTheLastToken) {
  head_.Forward({.training = false});
  // The logits end the stash, each row on a cache line of bf16.
  const float* last = head_.stash.floats() + head_.stash.span().size() -
                      (kRows - 2) * 32;  // of row 2
  DeviceMemory workspace(*head_.device, head_.unit->DecodeWorkspaceBytes());
  std::vector<float> logits(11);
  head_.unit->Decode(*head_.device, 6,
                     {.position = 0,
                      .count = 3,
                      .input = head_.input.get(),
                      .output = logits.data(),
                      .workspace = workspace.get(),
                      .parameters = head_.parameters.get(),
                      .tied_parameters = head_.tied_parameters.get()});
  EXPECT_LT(RelativeError(logits, absl::MakeSpan(last, 11)), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(TiedAndNot, HeadUnitTest, testing::Bool());

}  // namespace
}  // namespace troupe
