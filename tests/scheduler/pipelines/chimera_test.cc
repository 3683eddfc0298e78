#include "scheduler/pipelines/chimera.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

// Figure 3 of the paper: micro-batches 0 and 1 go down, 2 and 3 up.
TEST(Chimera, TwoDirections) {
  EXPECT_EQ(ComputeOrderText(*ChimeraOrder({.ranks = 4, .micro_batches = 4})),
            "F0m0 F0m1 F3m2 B3m2 F3m3 B3m3 B0m0 B0m1\n"
            "F1m0 F2m2 F1m1 F2m3 B2m2 B1m0 B2m3 B1m1\n"
            "F1m2 F2m0 F1m3 F2m1 B2m0 B1m2 B2m1 B1m3\n"
            "F0m2 F0m3 F3m0 B3m0 F3m1 B3m1 B0m2 B0m3\n");
}

TEST(Chimera, UnitsFollowEachOther) {
  EXPECT_EQ(ComputeOrderText(*ChimeraOrder({.ranks = 2, .micro_batches = 4})),
            "F0m0 F1m1 B1m1 B0m0 F0m2 F1m3 B1m3 B0m2\n"
            "F0m1 F1m0 B1m0 B0m1 F0m3 F1m2 B1m2 B0m3\n");
}

TEST(Chimera, EachStageIsOnTwoRanks) {
  EXPECT_EQ(StageHolders(*ChimeraOrder({.ranks = 4, .micro_batches = 2}), 4),
            (std::vector<std::vector<int>>{{0, 3}, {1, 2}, {1, 2}, {0, 3}}));
}

TEST(Chimera, OneMicroBatchNeedsNoReplica) {
  EXPECT_EQ(StageHolders(*ChimeraOrder({.ranks = 2, .micro_batches = 1}), 2),
            (std::vector<std::vector<int>>{{0}, {1}}));
}

TEST(Chimera, RefusesOddNumbersOfRanks) {
  EXPECT_EQ(ChimeraOrder({.ranks = 3}).status().message(),
            "parallelism.pipeline: chimera takes an even number of ranks, not "
            "3; the nearest are 2 and 4");
  EXPECT_EQ(ChimeraOrder({.ranks = 1}).status().message(),
            "parallelism.pipeline: chimera takes an even number of ranks, not "
            "1; the nearest is 2");
}

TEST(Chimera, RefusesVirtualStages) {
  EXPECT_EQ(
      ChimeraOrder({.ranks = 2, .virtual_stages = 2}).status().message(),
      "parallelism.virtual_stages: chimera has 1 stage a rank, not 2; leave it "
      "out");
}

}  // namespace
}  // namespace troupe
