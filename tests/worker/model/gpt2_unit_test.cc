// The units as a whole model: what must hold whatever the micro-batches.
#include "worker/model/gpt2_unit.h"

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
constexpr Gpt2Size kSize = {};

// Tokens and targets of samples [first, first + count), as a batch buffer.
std::vector<int32_t> Batch(int64_t first, int64_t count) {
  std::vector<int32_t> batch;
  for (const uint64_t seed : {5, 6}) {
    for (int64_t i = first * kLength; i < (first + count) * kLength; ++i) {
      batch.push_back(PhiloxUint32({.seed = seed}, i) % kSize.vocab);
    }
  }
  return batch;
}

struct Result {
  std::vector<std::vector<float>> gradients;  // by unit
  double loss_sum = 0;
  double tokens = 0;
};

// All gradients of the global batch, cut into micro-batches of `sequences`.
Result Train(int64_t sequences, double dropout, int threads = 1) {
  const auto device = NewCpuDevice({.threads = threads});
  ModelRunner runner(
      *device, Gpt2Model(kSize),
      {.shape = {.sequences = sequences, .sequence_length = kLength},
       .dropout = dropout,
       .seed = 3});
  runner.Initialize(7);
  // The last first: order must not matter either.
  for (int64_t first = kSequences - sequences; first >= 0; first -= sequences) {
    runner.Run(Batch(first, sequences).data(),
               {.step = 4,
                .first_sample = first,
                .training = true,
                .gradient_scale = 1.0 / (kSequences * kLength)});
  }
  Result result = {.loss_sum = runner.scalars()[0],
                   .tokens = runner.scalars()[1]};
  for (int u = 0; u < runner.units(); ++u) {
    result.gradients.emplace_back(runner.gradients(u).begin(),
                                  runner.gradients(u).end());
  }
  return result;
}

class MicroBatchTest : public testing::TestWithParam<double> {};

TEST_P(MicroBatchTest, AnySplitGivesTheSameLossAndGradients) {
  const Result whole = Train(kSequences, GetParam());
  EXPECT_EQ(whole.tokens, kSequences * kLength);
  for (const int64_t sequences : {1, 2, 3}) {
    const Result split = Train(sequences, GetParam(), /*threads=*/2);
    EXPECT_NEAR(split.loss_sum / whole.loss_sum, 1.0, 1e-6);
    EXPECT_EQ(split.tokens, whole.tokens);
    for (size_t u = 0; u < whole.gradients.size(); ++u) {
      EXPECT_LT(RelativeError(split.gradients[u], whole.gradients[u]), 3e-6)
          << "unit " << u << ", micro-batches of " << sequences;
    }
  }
}

// Rounding differs between the splits; training must not blow it up.
TEST_P(MicroBatchTest, AnySplitTrainsTheSameModel) {
  const auto device = NewCpuDevice({.threads = 1});
  const OptimizerSpec optimizer = AdamWSpec({.lr = 3e-3});
  std::vector<double> whole;
  for (const int64_t sequences : {kSequences, int64_t{1}, int64_t{2}}) {
    ModelRunner runner(
        *device, Gpt2Model(kSize),
        {.shape = {.sequences = sequences, .sequence_length = kLength},
         .dropout = GetParam()});
    runner.Initialize(7);
    for (int64_t step = 1; step <= 20; ++step) {
      runner.scalars()[0] = 0;
      for (int64_t first = 0; first < kSequences; first += sequences) {
        runner.Run(Batch(first + step * kSequences, sequences).data(),
                   {.step = step,
                    .first_sample = first,
                    .training = true,
                    .gradient_scale = 1.0 / (kSequences * kLength)});
      }
      runner.Step(optimizer, step, /*clip=*/1.0);
      const double loss = runner.scalars()[0] / (kSequences * kLength);
      if (sequences == kSequences) {
        whole.push_back(loss);
      } else {
        EXPECT_NEAR(loss, whole[step - 1], 1e-5) << "step " << step;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutDropout, MicroBatchTest,
                         testing::Values(0.0, 0.2));

TEST(Gpt2UnitTest, DropoutChangesTheLossButNotInValidation) {
  EXPECT_NE(Train(3, 0.0).loss_sum, Train(3, 0.2).loss_sum);
  const auto device = NewCpuDevice({.threads = 1});
  std::vector<double> losses;
  for (const double dropout : {0.0, 0.2}) {
    ModelRunner runner(*device, Gpt2Model(kSize),
                       {.shape = {.sequences = 2, .sequence_length = kLength},
                        .dropout = dropout});
    runner.Initialize(7);
    runner.Run(Batch(0, 2).data(), {.step = 4, .training = false});
    losses.push_back(runner.scalars()[0]);
  }
  EXPECT_EQ(losses[0], losses[1]);
}

// With dropout: its masks take part in the backward passes too.
class Gpt2GradientTest : public testing::TestWithParam<bool> {};

TEST_P(Gpt2GradientTest, AgreeWithFiniteDifferences) {
  const auto device = NewCpuDevice({.threads = 1});
  ModelSpec model = Gpt2Model({.layers = 1,
                               .hidden = 6,
                               .heads = 2,
                               .intermediate = 7,
                               .vocab = 11,
                               .positions = 8,
                               .tied = GetParam()});
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
                            /*delta=*/3e-3f),
              2e-3)
        << "unit " << u;
  }
}

INSTANTIATE_TEST_SUITE_P(TiedAndNot, Gpt2GradientTest, testing::Bool());

TEST(Gpt2UnitTest, EveryPlaceOfDropoutHasItsOwnStream) {
  std::vector<uint32_t> sites = {kGpt2EmbeddingDropoutSite};
  for (int layer = 0; layer < 4; ++layer) {
    for (const auto site :
         {Gpt2DropoutSite::kAttention, Gpt2DropoutSite::kAfterAttention,
          Gpt2DropoutSite::kAfterMlp}) {
      sites.push_back(Gpt2BlockDropoutSite(layer, site));
    }
  }
  for (size_t i = 0; i < sites.size(); ++i) EXPECT_EQ(sites[i], i);
}

}  // namespace
}  // namespace troupe
