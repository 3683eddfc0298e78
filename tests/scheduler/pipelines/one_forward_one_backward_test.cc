#include "scheduler/pipelines/one_forward_one_backward.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(OneForwardOneBackward, GoesBackwardAsSoonAsItCan) {
  EXPECT_EQ(ComputeOrderText(
                *OneForwardOneBackwardOrder({.ranks = 3, .micro_batches = 4})),
            "F0m0 F0m1 F0m2 B0m0 F0m3 B0m1 B0m2 B0m3\n"
            "F1m0 F1m1 B1m0 F1m2 B1m1 F1m3 B1m2 B1m3\n"
            "F2m0 B2m0 F2m1 B2m1 F2m2 B2m2 F2m3 B2m3\n");
}

TEST(OneForwardOneBackward, FewerMicroBatchesThanRanks) {
  EXPECT_EQ(ComputeOrderText(
                *OneForwardOneBackwardOrder({.ranks = 3, .micro_batches = 2})),
            "F0m0 F0m1 B0m0 B0m1\n"
            "F1m0 F1m1 B1m0 B1m1\n"
            "F2m0 B2m0 F2m1 B2m1\n");
}

TEST(OneForwardOneBackward, RefusesVirtualStages) {
  EXPECT_EQ(
      OneForwardOneBackwardOrder({.virtual_stages = 2}).status().message(),
      "parallelism.virtual_stages: 1f1b has 1 stage a rank, not 2; leave it "
      "out");
}

}  // namespace
}  // namespace troupe
