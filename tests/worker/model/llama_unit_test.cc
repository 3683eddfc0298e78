// The units as a whole model: what must hold whatever the micro-batches and the
// precision.
#include "worker/model/llama_unit.h"

#include <vector>

#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "proto/base/philox.h"
#include "tests/worker/model/model_runner.h"
#include "tests/worker/model/numeric.h"

namespace troupe {
namespace {

constexpr int64_t kSequences = 6;  // the global batch
constexpr int64_t kLength = 13;
constexpr LlamaShape kModel = {};

// Tokens and targets of samples [first, first + count), as a batch buffer.
std::vector<int32_t> Batch(int64_t first, int64_t count) {
  std::vector<int32_t> batch;
  for (const uint64_t seed : {5, 6}) {
    for (int64_t i = first * kLength; i < (first + count) * kLength; ++i) {
      batch.push_back(PhiloxUint32({.seed = seed}, i) % kModel.vocab);
    }
  }
  return batch;
}

struct Result {
  std::vector<std::vector<float>> gradients;  // by unit
  double loss_sum = 0;
};

struct Recipe {
  int64_t sequences = kSequences;  // of a micro-batch
  double dropout = 0;
  ElementType dtype = F32;
  bool training = true;
};

// All gradients of the global batch, cut into micro-batches.
Result Train(const Recipe& recipe) {
  const auto device = NewCpuDevice({.threads = 1});
  ModelSpec model = LlamaModel(kModel);
  model.set_initializer_range(0.2);
  ModelRunner runner(*device, model,
                     {.shape = {.sequences = recipe.sequences,
                                .sequence_length = kLength,
                                .dtype = recipe.dtype},
                      .dropout = recipe.dropout,
                      .seed = 3});
  runner.Initialize(7);
  for (int64_t first = kSequences - recipe.sequences; first >= 0;
       first -= recipe.sequences) {
    runner.Run(Batch(first, recipe.sequences).data(),
               {.step = 4,
                .first_sample = first,
                .training = recipe.training,
                .gradient_scale = 1.0 / (kSequences * kLength)});
  }
  Result result = {.loss_sum = runner.scalars()[0]};
  for (int u = 0; u < runner.units(); ++u) {
    result.gradients.emplace_back(runner.gradients(u).begin(),
                                  runner.gradients(u).end());
  }
  return result;
}

TEST(LlamaUnitTest, AnySplitGivesTheSameLossAndGradients) {
  for (const double dropout : {0.0, 0.2}) {
    const Result whole = Train({.dropout = dropout});
    for (const int64_t sequences : {1, 2, 3}) {
      const Result split = Train({.sequences = sequences, .dropout = dropout});
      EXPECT_NEAR(split.loss_sum / whole.loss_sum, 1.0, 1e-6);
      for (size_t u = 0; u < whole.gradients.size(); ++u) {
        EXPECT_LT(RelativeError(split.gradients[u], whole.gradients[u]), 3e-6)
            << "unit " << u << ", micro-batches of " << sequences;
      }
    }
  }
}

TEST(LlamaUnitTest, DropoutChangesTheLossButNotInValidation) {
  EXPECT_NE(Train({.dropout = 0.0}).loss_sum, Train({.dropout = 0.2}).loss_sum);
  EXPECT_EQ(Train({.dropout = 0.0, .training = false}).loss_sum,
            Train({.dropout = 0.2, .training = false}).loss_sum);
}

// bf16 keeps 8 bits, so a rounding is up to 2^-9 = 0.2 % of a number; two
// blocks of them leave the loss within 1 % and each unit's gradient within 5 %.
TEST(LlamaUnitTest, Bf16IsNearF32) {
  const Result f32 = Train({});
  const Result bf16 = Train({.dtype = BF16});
  EXPECT_NE(bf16.loss_sum, f32.loss_sum);
  EXPECT_NEAR(bf16.loss_sum / f32.loss_sum, 1.0, 0.01);
  for (size_t u = 0; u < f32.gradients.size(); ++u) {
    EXPECT_LT(RelativeError(bf16.gradients[u], f32.gradients[u]), 0.05)
        << "unit " << u;
  }
}

class LlamaGradientTest : public testing::TestWithParam<bool> {};

TEST_P(LlamaGradientTest, AgreeWithFiniteDifferences) {
  const auto device = NewCpuDevice({.threads = 1});
  ModelSpec model = LlamaModel({.layers = 1,
                                .hidden = 6,
                                .heads = 2,
                                .kv_heads = 1,
                                .head_dim = 4,
                                .intermediate = 7,
                                .vocab = 11,
                                .positions = 8,
                                .tied = GetParam(),
                                .bias = GetParam()});
  model.set_initializer_range(0.4);
  ModelRunner runner(*device, model,
                     {.shape = {.sequences = 2, .sequence_length = 5},
                      .dropout = 0.25,
                      .seed = 1});
  runner.Initialize(2);
  std::vector<int32_t> batch;
  for (int i = 0; i < 20; ++i) batch.push_back((7 * i + 3) % 11);
  batch[13] = -1;  // a target that does not count
  const MicroBatchContext context = {
      .step = 9, .first_sample = 2, .training = true, .gradient_scale = 0.1};
  runner.Run(batch.data(), context);
  EXPECT_EQ(runner.scalars()[1], 9);
  const auto loss = [&] {
    runner.scalars()[0] = 0;
    runner.Forward(batch.data(), context);
    return runner.scalars()[0] * context.gradient_scale;
  };
  for (int u = 0; u < runner.units(); ++u) {
    EXPECT_LT(GradientError(loss, runner.parameters(u), runner.gradients(u),
                            /*delta=*/2e-3f),
              5e-3)
        << "unit " << u;
  }
}

INSTANTIATE_TEST_SUITE_P(TiedWithBiasesAndNeither, LlamaGradientTest,
                         testing::Bool());

}  // namespace
}  // namespace troupe
