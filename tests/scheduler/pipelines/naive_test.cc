#include "scheduler/pipelines/naive.h"

#include <map>
#include <tuple>

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Naive, OneStageAccumulatesGradients) {
  EXPECT_EQ(ComputeOrderText(*NaiveOrder({.micro_batches = 3})),
            "F0m0 I0m0 W0m0 F0m1 I0m1 W0m1 F0m2 I0m2 W0m2\n");
}

TEST(Naive, EveryStageDoesTheSame) {
  EXPECT_EQ(ComputeOrderText(*NaiveOrder({.ranks = 2, .micro_batches = 2})),
            "F0m0 I0m0 W0m0 F0m1 I0m1 W0m1\n"
            "F1m0 I1m0 W1m0 F1m1 I1m1 W1m1\n");
}

TEST(Naive, EveryStepOnceForAllSmallShapes) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (int m = 1; m <= 24; ++m) {
      const ComputeOrder order =
          *NaiveOrder({.ranks = ranks, .micro_batches = m});
      std::map<std::tuple<int, int, int>, int> count;
      for (const auto& steps : order) {
        for (const ComputeStep& step : steps) {
          ++count[{step.kind, step.stage, step.micro_batch}];
        }
      }
      EXPECT_EQ(count.size(), 3 * ranks * m);
      for (const auto& [step, times] : count) EXPECT_EQ(times, 1);
    }
  }
}

TEST(Naive, RefusesVirtualStages) {
  EXPECT_EQ(NaiveOrder({.virtual_stages = 2}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe
