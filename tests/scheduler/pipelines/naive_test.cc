#include "scheduler/pipelines/naive.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Naive, OneStageAccumulatesGradients) {
  EXPECT_EQ(ComputeOrderText(*NaiveOrder({.micro_batches = 3})),
            "F0m0 B0m0 F0m1 B0m1 F0m2 B0m2\n");
}

TEST(Naive, EveryStageDoesTheSame) {
  EXPECT_EQ(ComputeOrderText(*NaiveOrder({.ranks = 2, .micro_batches = 2})),
            "F0m0 B0m0 F0m1 B0m1\n"
            "F1m0 B1m0 F1m1 B1m1\n");
}

TEST(Naive, RefusesVirtualStages) {
  EXPECT_EQ(NaiveOrder({.virtual_stages = 2}).status().message(),
            "parallelism.virtual_stages: naive has 1 stage a rank, not 2; "
            "leave it out");
}

}  // namespace
}  // namespace troupe
