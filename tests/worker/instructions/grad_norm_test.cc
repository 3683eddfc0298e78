#include "worker/instructions/grad_norm.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "tests/equivalence/small_job.h"
#include "tests/worker/rank/small_rank.h"

namespace troupe {
namespace {

TEST(GradNorm, AddsTheSumOfSquares) {
  SmallRank rank(SmallJob(), {});
  const int64_t count =
      rank.Find(Buffer::PARAMETER_GRADIENTS, 1).bytes() / sizeof(float);
  float* gradient = rank.Memory<float>(Buffer::PARAMETER_GRADIENTS, 1);
  std::fill(gradient, gradient + count, 0.5f);
  rank.Sum(kSquaredNormSum) = 3;
  ASSERT_TRUE(rank.Run("N u1").ok());
  EXPECT_DOUBLE_EQ(rank.Sum(kSquaredNormSum), 3 + 0.25 * count);
}

}  // namespace
}  // namespace troupe
