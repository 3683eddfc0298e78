// The units as a whole model: what must hold whatever the micro-batches and the
// precision.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "proto/base/philox.h"
#include "proto/plan/model.h"
#include "tests/graphs/skip_graph.h"
#include "tests/worker/model/model_runner.h"
#include "tests/worker/model/numeric.h"

namespace troupe {
namespace {

constexpr int64_t kSequences = 6;  // the global batch
constexpr int64_t kLength = 13;
constexpr int kVocabulary = 61;

// Tokens and targets of samples [first, first + count), as a batch buffer.
std::vector<int32_t> Batch(int64_t first, int64_t count) {
  std::vector<int32_t> batch;
  for (const uint64_t seed : {5, 6}) {
    for (int64_t i = first * kLength; i < (first + count) * kLength; ++i) {
      batch.push_back(PhiloxUint32({.seed = seed}, i) % kVocabulary);
    }
  }
  return batch;
}

struct Result {
  std::vector<std::vector<float>> gradients;  // by unit
  double loss_sum = 0;
  double tokens = 0;
};

struct Recipe {
  int64_t sequences = kSequences;  // of a micro-batch
  double dropout = 0;
  ElementType dtype = F32;
  bool training = true;
  int threads = 1;
};

class WholeModelTest : public testing::TestWithParam<std::string> {
 protected:
  static ModelSpec Model() {
    ModelSpec model =
        WithBiasesHeld(ModelNamed(GetParam(), {.tied = IsGpt2()}));
    if (!IsGpt2()) model.set_initializer_range(0.2);
    return model;
  }
  static bool IsGpt2() { return GetParam() == "gpt2"; }

  static ModelSpec TinyModel(bool tied) {
    ModelSpec model = WithBiasesHeld(TinyModelNamed(GetParam(), tied));
    model.set_initializer_range(0.4);
    return model;
  }

  // All gradients of the global batch, cut into micro-batches.
  static Result Train(const Recipe& recipe) {
    const auto device = NewCpuDevice({.threads = recipe.threads});
    ModelRunner runner(*device, Model(),
                       {.shape = {.sequences = recipe.sequences,
                                  .sequence_length = kLength,
                                  .dtype = recipe.dtype,
                                  .dropout = recipe.dropout},
                        .seed = 3});
    runner.Initialize(7);
    // The last first: order must not matter either.
    for (int64_t first = kSequences - recipe.sequences; first >= 0;
         first -= recipe.sequences) {
      runner.Run(Batch(first, recipe.sequences).data(),
                 {.step = 4,
                  .first_sample = first,
                  .training = recipe.training,
                  .gradient_scale = 1.0 / (kSequences * kLength),
                  .token_scale = 1.0 / (kSequences * kLength)});
    }
    Result result = {.loss_sum = runner.scalars()[0],
                     .tokens = runner.scalars()[1]};
    for (int u = 0; u < runner.units(); ++u) {
      result.gradients.emplace_back(runner.gradients(u).begin(),
                                    runner.gradients(u).end());
    }
    return result;
  }

  // The losses of 20 steps.
  static std::vector<double> Losses(int64_t sequences, double dropout) {
    const auto device = NewCpuDevice({.threads = 1});
    ModelRunner runner(*device, Model(),
                       {.shape = {.sequences = sequences,
                                  .sequence_length = kLength,
                                  .dropout = dropout}});
    runner.Initialize(7);
    const OptimizerSpec optimizer = AdamWSpec({.lr = 3e-3});
    std::vector<double> losses;
    for (int64_t step = 1; step <= 20; ++step) {
      runner.scalars()[0] = 0;
      for (int64_t first = 0; first < kSequences; first += sequences) {
        runner.Run(Batch(first + step * kSequences, sequences).data(),
                   {.step = step,
                    .first_sample = first,
                    .training = true,
                    .gradient_scale = 1.0 / (kSequences * kLength),
                  .token_scale = 1.0 / (kSequences * kLength)});
      }
      runner.Step(optimizer, step, /*clip=*/1.0);
      losses.push_back(runner.scalars()[0] / (kSequences * kLength));
    }
    return losses;
  }
};

TEST_P(WholeModelTest, AnySplitGivesTheSameLossAndGradients) {
  for (const double dropout : {0.0, 0.2}) {
    const Result whole = Train({.dropout = dropout});
    EXPECT_EQ(whole.tokens, kSequences * kLength);
    for (const int64_t sequences : {1, 2, 3}) {
      const Result split =
          Train({.sequences = sequences, .dropout = dropout, .threads = 2});
      EXPECT_NEAR(split.loss_sum / whole.loss_sum, 1.0, 1e-6);
      EXPECT_EQ(split.tokens, whole.tokens);
      for (size_t u = 0; u < whole.gradients.size(); ++u) {
        EXPECT_LT(RelativeError(split.gradients[u], whole.gradients[u]), 3e-6)
            << "unit " << u << ", micro-batches of " << sequences;
      }
    }
  }
}

// Rounding differs between the splits; training must not blow it up.
TEST_P(WholeModelTest, AnySplitTrainsTheSameModel) {
  for (const double dropout : {0.0, 0.2}) {
    const std::vector<double> whole = Losses(kSequences, dropout);
    for (const int64_t sequences : {1, 2}) {
      const std::vector<double> split = Losses(sequences, dropout);
      for (size_t step = 0; step < whole.size(); ++step) {
        EXPECT_NEAR(split[step], whole[step], 1e-5) << "step " << step + 1;
      }
    }
  }
}

TEST_P(WholeModelTest, DropoutChangesTheLossButNotInValidation) {
  EXPECT_NE(Train({.dropout = 0.0}).loss_sum, Train({.dropout = 0.2}).loss_sum);
  EXPECT_EQ(Train({.dropout = 0.0, .training = false}).loss_sum,
            Train({.dropout = 0.2, .training = false}).loss_sum);
}

// bf16 keeps 8 bits, so a rounding is up to 2^-9 = 0.2 % of a number; two
// blocks of them leave the loss within 1 % and each unit's gradient within 5 %.
TEST_P(WholeModelTest, Bf16IsNearF32) {
  const Result f32 = Train({});
  const Result bf16 = Train({.dtype = BF16});
  EXPECT_NE(bf16.loss_sum, f32.loss_sum);
  EXPECT_NEAR(bf16.loss_sum / f32.loss_sum, 1.0, 0.01);
  for (size_t u = 0; u < f32.gradients.size(); ++u) {
    EXPECT_LT(RelativeError(bf16.gradients[u], f32.gradients[u]), 0.05)
        << "unit " << u;
  }
}

// fp16 keeps 11 bits: an eighth of that.
TEST_P(WholeModelTest, Fp16IsNearF32) {
  const Result f32 = Train({});
  const Result fp16 = Train({.dtype = F16});
  EXPECT_NE(fp16.loss_sum, f32.loss_sum);
  EXPECT_NEAR(fp16.loss_sum / f32.loss_sum, 1.0, 0.01 / 8);
  for (size_t u = 0; u < f32.gradients.size(); ++u) {
    EXPECT_LT(RelativeError(fp16.gradients[u], f32.gradients[u]), 0.05 / 8)
        << "unit " << u;
  }
}

// With dropout: its masks take part in the backward passes too. A vocabulary of
// 11.
void ExpectGradientsAreDifferences(const ModelSpec& model) {
  const auto device = NewCpuDevice({.threads = 1});
  ModelRunner runner(
      *device, model,
      {.shape = {.sequences = 2, .sequence_length = 5, .dropout = 0.25},
       .seed = 1});
  runner.Initialize(2);
  std::vector<int32_t> batch;
  for (int i = 0; i < 20; ++i) batch.push_back((7 * i + 3) % 11);
  batch[13] = -1;  // a target that does not count
  const MicroBatchContext context = {
      .step = 9, .first_sample = 2, .training = true, .gradient_scale = 0.1, .token_scale = 0.1};
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

TEST_P(WholeModelTest, GradientsAgreeWithFiniteDifferences) {
  for (const bool tied : {false, true}) {
    SCOPED_TRACE(tied);
    ExpectGradientsAreDifferences(TinyModel(tied));
  }
}

// What the last unit and the head read of the first block, and what each unit
// reads of the one before.
TEST(WholeGraphTest, GradientsOfSkipsAgreeWithFiniteDifferences) {
  for (const bool tied : {false, true}) {
    SCOPED_TRACE(tied);
    ExpectGradientsAreDifferences(SkipModel({.blocks = 3,
                                             .hidden = 6,
                                             .heads = 2,
                                             .intermediate = 7,
                                             .vocabulary = 11,
                                             .positions = 8,
                                             .init_std = 0.4,
                                             .tied = tied}));
  }
}

TEST_P(WholeModelTest, EveryPlaceOfDropoutHasItsOwnStream) {
  const auto units = ModelUnits(
      Model(), {.sequences = 1, .sequence_length = kLength, .dropout = 0.2});
  ASSERT_TRUE(units.ok()) << units.status();
  std::vector<int> sites;
  for (const Unit& unit : units->units) {
    for (const Op& op : units->tables[unit.table()].ops()) {
      if (!op.has_mask()) continue;
      sites.push_back(op.mask().site() +
                      unit.layer() * op.mask().sites_per_layer());
    }
  }
  // One behind a GPT's embedding and three in each block; Llamas drop only
  // probabilities of their attention. Other numbers are other masks: a job that
  // goes on from a checkpoint would draw them.
  const bool is_gpt = IsGpt2() || GetParam() == "gpt_neox";
  const std::vector<int> expected =
      is_gpt ? std::vector<int>{0, 1, 2, 3, 4, 5, 6} : std::vector<int>{0, 1};
  EXPECT_EQ(sites, expected);
}

INSTANTIATE_TEST_SUITE_P(Architectures, WholeModelTest,
                         testing::ValuesIn(ModelNames()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace troupe
