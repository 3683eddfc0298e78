#include "scheduler/pipelines/zb_v.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(ZbV, DownAndUpAgain) {
  EXPECT_EQ(
      ComputeOrderText(
          *ZbVOrder({.ranks = 2, .micro_batches = 3, .virtual_stages = 2})),
      "F0m0 F0m1 F0m2 F3m0 I3m0 W3m0 F3m1 I3m1 W3m1 I0m0 W0m0 F3m2 I3m2 W3m2 "
      "I0m1 W0m1 I0m2 W0m2\n"
      "F1m0 F2m0 F1m1 F2m1 I2m0 W2m0 F1m2 I1m0 W1m0 F2m2 I2m1 W2m1 I1m1 I2m2 "
      "I1m2 W1m1 W2m2 W1m2\n");
}

TEST(ZbV, FirstAndLastStageAreOnOneRank) {
  EXPECT_EQ(
      StageHolders(
          *ZbVOrder({.ranks = 3, .micro_batches = 4, .virtual_stages = 2}), 6),
      (std::vector<std::vector<int>>{{0}, {1}, {2}, {2}, {1}, {0}}));
}

TEST(ZbV, RefusesOtherVirtualStages) {
  EXPECT_EQ(ZbVOrder({.virtual_stages = 3}).status().message(),
            "parallelism.virtual_stages: zb_v has 2 stages a rank, not 3; "
            "leave it out");
}

}  // namespace
}  // namespace troupe
