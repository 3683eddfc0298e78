// bf16 trains the model that f32 trains: over 200 steps its losses stay within
// the distance that docs/models.md states.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "gtest/gtest.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/small_job.h"

namespace troupe {
namespace {

constexpr int kSteps = 200;
// Of a step's loss, relative. A weight of bf16 has 8 bits: its rounding is a
// noise that f32 lacks, so the two take slightly different ways down.
constexpr double kEachStep = 1e-2;
// Of the mean of the last 50: where they arrive.
constexpr double kAtTheEnd = 2e-3;

double MeanOfLast(const TrainingRun& run, int steps) {
  double sum = 0;
  for (int i = kSteps - steps; i < kSteps; ++i) {
    sum += run.steps[0][i].loss() / steps;
  }
  return sum;
}

class PrecisionTest : public testing::TestWithParam<std::string> {};

TEST_P(PrecisionTest, Bf16StaysBesideF32) {
  JobSpec job = GetParam() == "gpt2" ? SmallJob() : SmallLlamaJob();
  job.mutable_training()->set_steps(kSteps);
  job.mutable_training()->set_validate_every(kSteps);
  const TrainingRun f32 = Train(job, {});
  job.mutable_training()->set_precision("bf16");
  const TrainingRun bf16 = Train(job, {});
  ASSERT_TRUE(f32.status().ok()) << f32.status();
  ASSERT_TRUE(bf16.status().ok()) << bf16.status();
  ASSERT_EQ(f32.steps[0].size(), size_t{kSteps});
  ASSERT_EQ(bf16.steps[0].size(), size_t{kSteps});
  double worst = 0;
  for (int i = 0; i < kSteps; ++i) {
    const double loss = f32.steps[0][i].loss();
    worst = std::max(worst, std::abs(bf16.steps[0][i].loss() / loss - 1));
  }
  const double end = std::abs(MeanOfLast(bf16, 50) / MeanOfLast(f32, 50) - 1);
  std::printf("%s: loss %.3f to %.3f; bf16 within %.1e, at the end %.1e\n",
              GetParam().c_str(), f32.steps[0][0].loss(), MeanOfLast(f32, 50),
              worst, end);
  EXPECT_LT(MeanOfLast(f32, 50), f32.steps[0][0].loss() / 2);
  EXPECT_GT(worst, 0) << "both ran in one precision";
  EXPECT_LT(worst, kEachStep);
  EXPECT_LT(end, kAtTheEnd);
}

INSTANTIATE_TEST_SUITE_P(Architectures, PrecisionTest,
                         testing::Values("gpt2", "llama"));

}  // namespace
}  // namespace troupe
