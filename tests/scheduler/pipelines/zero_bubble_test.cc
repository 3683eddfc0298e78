#include "scheduler/pipelines/zero_bubble.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(ZeroBubble, OneRankGoesBackAtOnce) {
  EXPECT_EQ(ComputeOrderText(ZeroBubbleOrder({.micro_batches = 2}, 1)),
            "F0m0 I0m0 W0m0 F0m1 I0m1 W0m1\n");
}

TEST(ZeroBubble, DepthIsWarmUpAndDelay) {
  EXPECT_EQ(
      ComputeOrderText(ZeroBubbleOrder({.ranks = 2, .micro_batches = 5}, 3)),
      "F0m0 F0m1 F0m2 F0m3 I0m0 W0m0 F0m4 I0m1 W0m1 I0m2 W0m2 I0m3 W0m3 "
      "I0m4 W0m4\n"
      "F1m0 I1m0 F1m1 I1m1 F1m2 I1m2 F1m3 I1m3 W1m0 F1m4 I1m4 W1m1 W1m2 "
      "W1m3 W1m4\n");
}

}  // namespace
}  // namespace troupe
