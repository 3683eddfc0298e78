#include "worker/instructions/forward.h"

#include <cmath>

#include "gtest/gtest.h"
#include "tests/equivalence/small_job.h"
#include "tests/worker/rank/small_rank.h"

namespace troupe {
namespace {

// All of a micro-batch, with the head's loss.
double Loss(SmallRank& rank) {
  for (double& sum : rank.AllSums()) sum = 0;
  EXPECT_TRUE(rank.Run("L m0").ok());
  EXPECT_TRUE(rank.RunAll("F").ok());
  EXPECT_EQ(rank.Sum(kTokensSum), 8 * 17);
  return rank.Sum(kLossSum) / rank.Sum(kTokensSum);
}

TEST(Forward, UntrainedWeightsGuess) {
  SmallRank rank(SmallJob(), {});
  EXPECT_NEAR(Loss(rank), std::log(61), 0.05);
}

TEST(Forward, DropoutIsDrawnByTheStepAndInTrainingOnly) {
  JobSpec job = SmallJob();
  job.mutable_training()->set_dropout(0.5);
  SmallRank rank(job, {});
  rank.state().step.step = 1;
  const double first = Loss(rank);
  EXPECT_EQ(Loss(rank), first);
  rank.state().step.step = 2;
  EXPECT_NE(Loss(rank), first);

  rank.state().step.training = false;
  const double without = Loss(rank);
  rank.state().step.step = 3;
  EXPECT_EQ(Loss(rank), without);
}

}  // namespace
}  // namespace troupe
