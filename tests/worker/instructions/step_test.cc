#include "worker/instructions/step.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"
#include "tests/equivalence/small_job.h"
#include "tests/worker/rank/small_rank.h"

namespace troupe {
namespace {

JobSpec SgdJob() {
  JobSpec job = SmallJob();
  job.mutable_optimizer()->set_name("sgd");
  job.mutable_optimizer()->set_weight_decay(0);
  job.mutable_training()->set_gradient_clipping(2);
  return job;
}

// Of the first weight of a norm, which is 1 at first, where every gradient
// is 1.
float WeightAfterStep(SmallRank& rank, double squared_norm) {
  const int64_t count =
      rank.Find(Buffer::PARAMETER_GRADIENTS, 3).bytes() / sizeof(float);
  float* gradient = rank.Memory<float>(Buffer::PARAMETER_GRADIENTS, 3);
  std::fill(gradient, gradient + count, 1.0f);
  rank.Memory<double>(Buffer::SCALARS)[kSquaredNorm] = squared_norm;
  rank.state().step.learning_rate = 0.125;
  EXPECT_TRUE(rank.Run("O u3").ok());
  EXPECT_EQ(std::count(gradient, gradient + count, 0.0f), count);
  return rank.Memory<float>(Buffer::PARAMETERS, 3)[0];
}

TEST(Step, StepsByTheLearningRate) {
  SmallRank rank(SgdJob(), {});
  EXPECT_FLOAT_EQ(WeightAfterStep(rank, 4), 1 - 0.125);
}

TEST(Step, ClipsByTheGlobalNorm) {
  SmallRank rank(SgdJob(), {});
  EXPECT_NEAR(WeightAfterStep(rank, 64), 1 - 0.125 * 2 / 8, 1e-6);
}

}  // namespace
}  // namespace troupe
