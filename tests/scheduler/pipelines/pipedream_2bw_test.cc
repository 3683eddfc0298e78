#include "scheduler/pipelines/pipedream_2bw.h"

#include "gtest/gtest.h"
#include "tests/scheduler/pipelines/weight_ages.h"

namespace troupe {
namespace {

TEST(Pipedream2bw, AllRanksAreOneStepBehind) {
  EXPECT_EQ(
      ComputeOrderText(*Pipedream2bwOrder({.ranks = 3, .micro_batches = 3})),
      "F0m2@1 B0m0@1 F0m0+1 B0m1@1 F0m1+1 B0m2@1\n"
      "F1m1@1 B1m0@1 F1m2@1 B1m1@1 F1m0+1 B1m2@1\n"
      "F2m0@1 B2m0@1 F2m1@1 B2m1@1 F2m2@1 B2m2@1\n");
}

// The paper's w(t-1) for the step that makes w(t+1).
TEST(Pipedream2bw, UsesTheWeightsOfTwoStepsAgo) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (int m = ranks; m <= 24; ++m) {
      const ComputeOrder order =
          *Pipedream2bwOrder({.ranks = ranks, .micro_batches = m});
      for (const auto& [where, used] : WeightAges(order)) {
        EXPECT_EQ(used, std::set<int>{2});
      }
      for (const auto& steps : order) EXPECT_EQ(WeightVersions(steps), 2);
    }
  }
}

TEST(Pipedream2bw, RefusesFewerMicroBatchesThanRanks) {
  EXPECT_EQ(
      Pipedream2bwOrder({.ranks = 4, .micro_batches = 3}).status().message(),
      "training.global_batch_size: pipedream_2bw on 4 ranks takes at least 4 "
      "micro-batches a step from each data replica, not 3");
}

TEST(Pipedream2bw, RefusesVirtualStages) {
  EXPECT_EQ(Pipedream2bwOrder({.virtual_stages = 2}).status().message(),
            "parallelism.virtual_stages: pipedream_2bw has 1 stage a rank, not "
            "2; leave it out");
}

}  // namespace
}  // namespace troupe
