#include "scheduler/pipelines/compute_order.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

constexpr auto kF = ComputeStep::kForward;
constexpr auto kI = ComputeStep::kBackwardInput;
constexpr auto kW = ComputeStep::kBackwardWeight;

TEST(ComputeOrder, InputAndWeightOfOneMicroBatchAreOneBackward) {
  EXPECT_TRUE(OneBackward({kI, 1, 2}, {kW, 1, 2}));
  EXPECT_FALSE(OneBackward({kI, 1, 2}, {kW, 1, 1}));
  EXPECT_FALSE(OneBackward({kI, 1, 2}, {kW, 0, 2}));
  EXPECT_FALSE(OneBackward({kI, 1, 2}, {kF, 1, 2}));
  EXPECT_FALSE(OneBackward({kW, 1, 2}, {kI, 1, 2}));
  EXPECT_FALSE(OneBackward(
      {.kind = kI, .stage = 1, .micro_batch = 2, .split = true}, {kW, 1, 2}));
}

TEST(ComputeOrder, ForwardsSayWhoHoldsAStage) {
  const ComputeOrder order = {{{kF, 0, 0}, {kF, 1, 1}, {kF, 0, 2}},
                              {{kF, 1, 0}, {kF, 0, 1}}};
  EXPECT_EQ(StageHolders(order, 3),
            (std::vector<std::vector<int>>{{0, 1}, {0, 1}, {}}));
}

TEST(ComputeOrder, AgesAndWorkAhead) {
  const std::vector<ComputeStep> steps = {
      {.kind = kF, .ahead = 2},
      {.kind = kI, .weight_version = 1},
  };
  EXPECT_EQ(MaxAhead(steps), 2);
  EXPECT_EQ(WeightVersions(steps), 2);
  EXPECT_EQ(MaxAhead({}), 0);
  EXPECT_EQ(WeightVersions({}), 1);
}

TEST(ComputeOrder, AsText) {
  EXPECT_EQ(ComputeOrderText({{{.kind = kF,
                                .stage = 1,
                                .micro_batch = 12,
                                .ahead = 2,
                                .weight_version = 3},
                               {kI, 0, 3}},
                              {{kW, 2, 1, 0, 1}, {kI, 2, 2}, {kW, 2, 2}},
                              {}}),
            "F1m12+2@3 I0m3\n"
            "W2m1@1 B2m2\n"
            "\n");
}

}  // namespace
}  // namespace troupe
