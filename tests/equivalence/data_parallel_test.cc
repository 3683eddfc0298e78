// The promise: every synchronous plan of a job trains the same model. However
// a job is cut over ranks and micro-batches, with dropout or without, over
// whichever backend, its losses are those of a single rank to rounding.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/same_training.h"
#include "tests/equivalence/small_job.h"

namespace troupe {
namespace {

// A master weight that lies near the middle between two numbers of bf16 may be
// rounded to either, which differ by one part in 256.
constexpr double kBf16RelativeError = 1e-2;

// Ranks, sequences of a micro-batch, dropout, backend.
using Cut = std::tuple<int, int, double, std::string>;

class DataParallel : public testing::TestWithParam<Cut> {};

TEST_P(DataParallel, TrainsTheSameModel) {
  const auto& [ranks, micro_batch, dropout, backend] = GetParam();
  JobSpec job = SmallJob();
  job.mutable_training()->set_dropout(dropout);
  const TrainingRun& reference = OneRank(job);
  ASSERT_TRUE(reference.status().ok()) << reference.status();
  ASSERT_EQ(reference.steps[0].size(), 20u);
  EXPECT_LT(reference.steps[0].back().loss(),
            reference.steps[0][0].loss() - 0.5);

  job.mutable_parallelism()->set_data(ranks);
  job.mutable_training()->set_micro_batch_size(micro_batch);
  // Buckets of a few kilobytes, so that there are several.
  job.mutable_parallelism()->set_bucket_megabytes(0.02);
  ExpectSameTraining(Train(job, {.ranks = ranks, .backend = backend}),
                     reference);
}

INSTANTIATE_TEST_SUITE_P(InProcess, DataParallel,
                         testing::Combine(testing::Values(1, 2, 4),
                                          testing::Values(1, 2),
                                          testing::Values(0.0, 0.1),
                                          testing::Values("in_process")));
INSTANTIATE_TEST_SUITE_P(Gloo, DataParallel,
                         testing::Combine(testing::Values(2, 4),
                                          testing::Values(2),
                                          testing::Values(0.1),
                                          testing::Values("gloo")));

class LlamaDataParallel : public testing::TestWithParam<Cut> {};

TEST_P(LlamaDataParallel, TrainsTheSameModel) {
  const auto& [ranks, micro_batch, dropout, backend] = GetParam();
  JobSpec job = SmallLlamaJob();
  job.mutable_training()->set_dropout(dropout);
  const TrainingRun& reference = OneRank(job);
  ASSERT_TRUE(reference.status().ok()) << reference.status();
  EXPECT_LT(reference.steps[0].back().loss(),
            reference.steps[0][0].loss() - 0.5);
  job.mutable_parallelism()->set_data(ranks);
  job.mutable_training()->set_micro_batch_size(micro_batch);
  job.mutable_parallelism()->set_bucket_megabytes(0.02);
  ExpectSameTraining(Train(job, {.ranks = ranks, .backend = backend}),
                     reference);
}

INSTANTIATE_TEST_SUITE_P(InProcess, LlamaDataParallel,
                         testing::Combine(testing::Values(1, 2, 4),
                                          testing::Values(2),
                                          testing::Values(0.0, 0.1),
                                          testing::Values("in_process")));

class Bf16DataParallel : public testing::TestWithParam<std::string> {};

TEST_P(Bf16DataParallel, TrainsTheSameModelButForItsRounding) {
  JobSpec job = GetParam() == "gpt2" ? SmallJob() : SmallLlamaJob();
  const TrainingRun& f32 = OneRank(job);
  job.mutable_training()->set_precision("bf16");
  const TrainingRun& one = OneRank(job);
  ASSERT_TRUE(one.status().ok()) << one.status();
  // Rounding is no excuse for not learning.
  EXPECT_LT(one.steps[0].back().loss(), one.steps[0][0].loss() - 0.5);
  const auto distance = [](const TrainingRun& a, const TrainingRun& b) {
    double worst = 0;
    for (size_t i = 0; i < a.steps[0].size(); ++i) {
      worst = std::max(
          worst, std::abs(a.steps[0][i].loss() / b.steps[0][i].loss() - 1));
    }
    return worst;
  };
  job.mutable_parallelism()->set_data(2);
  job.mutable_training()->set_micro_batch_size(2);
  const TrainingRun two = Train(job, {.ranks = 2});
  ExpectSameTraining(two, one, kBf16RelativeError);
  std::printf("bf16: losses of two ranks within %.1e of one's, of f32 %.1e\n",
              distance(two, one), distance(one, f32));
  EXPECT_LT(distance(two, one), 1e-3);
  EXPECT_LT(distance(one, f32), 3e-3);
}

INSTANTIATE_TEST_SUITE_P(Architectures, Bf16DataParallel,
                         testing::Values("gpt2", "llama"));

TEST(DataParallel, SgdWithMomentumTrainsTheSameModel) {
  JobSpec job = SmallJob();
  job.mutable_optimizer()->set_name("sgd");
  job.mutable_optimizer()->set_momentum(0.9);
  job.mutable_optimizer()->set_lr(0.1);
  const TrainingRun& reference = OneRank(job);
  ASSERT_TRUE(reference.status().ok()) << reference.status();
  job.mutable_parallelism()->set_data(4);
  job.mutable_training()->set_micro_batch_size(1);
  ExpectSameTraining(Train(job, {.ranks = 4}), reference);
}

}  // namespace
}  // namespace troupe
