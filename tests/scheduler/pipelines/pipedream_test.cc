#include "scheduler/pipelines/pipedream.h"

#include "gtest/gtest.h"
#include "tests/scheduler/pipelines/weight_ages.h"

namespace troupe {
namespace {

TEST(Pipedream, StashesWeights) {
  EXPECT_EQ(ComputeOrderText(*PipedreamOrder({.ranks = 3})),
            "F0m0+2 B0m0@2\n"
            "F1m0+1 B1m0@1\n"
            "F2m0 B2m0\n");
}

TEST(Pipedream, SeveralMicroBatchesAStep) {
  EXPECT_EQ(ComputeOrderText(*PipedreamOrder({.ranks = 3, .micro_batches = 2})),
            "F0m0+1 B0m0@1 F0m1+1 B0m1@1\n"
            "F1m1 B1m0@1 F1m0+1 B1m1\n"
            "F2m0 B2m0 F2m1 B2m1\n");
}

TEST(Pipedream, VerticalSync) {
  EXPECT_EQ(ComputeOrderText(
                *PipedreamOrder({.ranks = 3, .options = {kVerticalSync}})),
            "F0m0+2 B0m0@2\n"
            "F1m0+1@1 B1m0@2\n"
            "F2m0@2 B2m0@2\n");
}

// The paper's promise: forward and backward with the same weights; with
// vertical sync, the same on all ranks.
TEST(Pipedream, ForwardAndBackwardUseTheSameWeights) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (int m = 1; m <= 24; ++m) {
      for (const bool sync : {false, true}) {
        PipelineShape shape = {.ranks = ranks, .micro_batches = m};
        if (sync) shape.options.emplace_back(kVerticalSync);
        const ComputeOrder order = *PipedreamOrder(shape);
        const auto ages = WeightAges(order);
        for (const auto& [where, used] : ages) {
          EXPECT_EQ(used.size(), 1);
          if (sync) {
            EXPECT_EQ(used, ages.at({0, std::get<1>(where)}));
          }
        }
        for (int rank = 0; rank < ranks; ++rank) {
          const int delay = ranks - 1 - (sync ? 0 : rank);
          EXPECT_EQ(WeightVersions(order[rank]), 1 + (delay + m - 1) / m);
        }
      }
    }
  }
}

TEST(Pipedream, RefusesVirtualStages) {
  EXPECT_EQ(PipedreamOrder({.virtual_stages = 2}).status().message(),
            "parallelism.virtual_stages: pipedream has 1 stage a rank, not 2; "
            "leave it out");
}

}  // namespace
}  // namespace troupe
