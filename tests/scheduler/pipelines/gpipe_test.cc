#include "scheduler/pipelines/gpipe.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Gpipe, AllForwardThenAllBackward) {
  EXPECT_EQ(ComputeOrderText(*GpipeOrder({.ranks = 2, .micro_batches = 3})),
            "F0m0 F0m1 F0m2 B0m2 B0m1 B0m0\n"
            "F1m0 F1m1 F1m2 B1m2 B1m1 B1m0\n");
}

TEST(Gpipe, RefusesVirtualStages) {
  EXPECT_EQ(GpipeOrder({.virtual_stages = 3}).status().message(),
            "parallelism.virtual_stages: gpipe has 1 stage a rank, not 3; "
            "leave it out");
}

}  // namespace
}  // namespace troupe
