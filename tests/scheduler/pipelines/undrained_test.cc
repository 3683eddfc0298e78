#include "scheduler/pipelines/undrained.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Undrained, EarlyRanksRunAhead) {
  EXPECT_EQ(ComputeOrderText(UndrainedOrder({.ranks = 3, .micro_batches = 2})),
            "F0m0+1 B0m0 F0m1+1 B0m1\n"
            "F1m1 B1m0 F1m0+1 B1m1\n"
            "F2m0 B2m0 F2m1 B2m1\n");
}

TEST(Undrained, AheadIsWhatTheOrderSays) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (int m = 1; m <= 24; ++m) {
      const PipelineShape shape = {.ranks = ranks, .micro_batches = m};
      const ComputeOrder order = UndrainedOrder(shape);
      for (int rank = 0; rank < ranks; ++rank) {
        for (const ComputeStep& step : order[rank]) {
          if (step.kind != ComputeStep::kForward) continue;
          EXPECT_EQ(UndrainedAhead(
                        shape, {.rank = rank, .micro_batch = step.micro_batch}),
                    step.ahead);
        }
      }
    }
  }
}

}  // namespace
}  // namespace troupe
