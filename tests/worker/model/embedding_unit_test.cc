#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/model/model_runner.h"
#include "tests/worker/model/numeric.h"
#include "tests/worker/model/unit_harness.h"

namespace troupe {
namespace {

constexpr int64_t kWidth = 4;
constexpr int64_t kLength = 4;
constexpr int64_t kSequences = 2;
constexpr MicroBatchShape kShape = {.sequences = kSequences,
                                    .sequence_length = kLength};

class EmbeddingUnitTest : public testing::TestWithParam<double> {
 protected:
  EmbeddingUnitTest()
      : embedding_(
            Gpt2Model(
                {.hidden = kWidth, .heads = 2, .vocab = 11, .positions = 6}),
            0, {.shape = kShape, .dropout = GetParam()}) {
    embedding_.batch = {3, 3, 0, 10, 7, 3, 1, 0};
    embedding_.batch.resize(2 * kSequences * kLength, -1);
  }

  float Sum(int64_t row, int64_t column) {
    const float* wte = embedding_.parameters.floats();
    const float* wpe = wte + embedding_.spec.parameters(1).offset();
    return wte[embedding_.batch[row] * kWidth + column] +
           wpe[row % kLength * kWidth + column];
  }

  UnitHarness embedding_;
};

TEST_P(EmbeddingUnitTest, ForwardAddsTheTwoTables) {
  embedding_.Forward({.training = false});
  for (int64_t row = 0; row < kSequences * kLength; ++row) {
    for (int64_t column = 0; column < kWidth; ++column) {
      EXPECT_EQ(embedding_.output.floats()[row * kWidth + column],
                Sum(row, column));
    }
  }
}

TEST_P(EmbeddingUnitTest, BackwardAgreesWithFiniteDifferences) {
  const MicroBatchContext context = {
      .step = 2, .first_sample = 4, .training = true};
  embedding_.unit->BackwardWeight(*embedding_.device, context,
                                  embedding_.Buffers());
  const auto loss = [&] {
    embedding_.Forward(context);
    return Dot(embedding_.output.span(), embedding_.d_output.span());
  };
  EXPECT_LT(GradientError(loss, embedding_.parameters.span(),
                          embedding_.gradients.span()),
            1e-3);
}

TEST_P(EmbeddingUnitTest, DecodeStartsAtItsPosition) {
  std::vector<float> output(2 * kWidth);
  embedding_.unit->Decode(*embedding_.device, 6,
                          {.position = 2,
                           .count = 2,
                           .tokens = embedding_.batch.data() + 2,
                           .output = output.data(),
                           .parameters = embedding_.parameters.get()});
  for (int64_t i = 0; i < 2 * kWidth; ++i) {
    EXPECT_EQ(output[i], Sum(2 + i / kWidth, i % kWidth));
  }
}

TEST_P(EmbeddingUnitTest, TokensHaveNoGradient) {
  EXPECT_DEATH(embedding_.unit->BackwardInput(*embedding_.device, {},
                                              embedding_.Buffers()),
               "tokens have no gradient");
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutDropout, EmbeddingUnitTest,
                         testing::Values(0.0, 0.4));

}  // namespace
}  // namespace troupe
