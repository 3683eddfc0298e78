#include "worker/instructions/backward_weight.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/equivalence/small_job.h"
#include "tests/worker/rank/small_rank.h"

namespace troupe {
namespace {

TEST(BackwardWeight, AddsToTheGradientsThatAreThere) {
  SmallRank rank(SmallJob(), {});
  ASSERT_TRUE(rank.Run("L m0").ok());
  ASSERT_TRUE(rank.RunAll("F").ok());
  ASSERT_TRUE(rank.Run("I u3 m0").ok());
  const int64_t count =
      rank.Find(Buffer::PARAMETER_GRADIENTS, 3).bytes() / sizeof(float);
  const float* gradient = rank.Memory<float>(Buffer::PARAMETER_GRADIENTS, 3);
  ASSERT_TRUE(rank.Run("W u3 m0").ok());
  const std::vector<float> once(gradient, gradient + count);
  ASSERT_TRUE(rank.Run("W u3 m0").ok());
  float largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    EXPECT_FLOAT_EQ(gradient[i], 2 * once[i]);
    largest = std::max(largest, std::abs(once[i]));
  }
  EXPECT_GT(largest, 0);
}

}  // namespace
}  // namespace troupe
