#include "worker/instructions/backward_input.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"
#include "tests/equivalence/small_job.h"
#include "tests/worker/rank/small_rank.h"

namespace troupe {
namespace {

TEST(BackwardInput, WritesTheGradientOfTheUnitBefore) {
  SmallRank rank(SmallJob(), {});
  ASSERT_TRUE(rank.Run("L m0").ok());
  ASSERT_TRUE(rank.RunAll("F").ok());
  const Buffer& buffer = rank.Find(Buffer::GRADIENT, 2, 0);
  float* gradient = rank.Memory<float>(Buffer::GRADIENT, 2, 0);
  const int64_t count = buffer.bytes() / sizeof(float);
  std::fill(gradient, gradient + count, 1e30f);
  ASSERT_TRUE(rank.Run("I u3 m0").ok());
  float largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    largest = std::max(largest, std::abs(gradient[i]));
  }
  // The loss is a mean over 136 tokens.
  EXPECT_GT(largest, 0);
  EXPECT_LT(largest, 1);
}

}  // namespace
}  // namespace troupe
