#include "scheduler/pipelines/gpipe.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Gpipe, AllForwardThenAllBackward) {
  EXPECT_EQ(ComputeOrderText(*GpipeOrder({.ranks = 2, .micro_batches = 3})),
            "F0m0 F0m1 F0m2 I0m2 W0m2 I0m1 W0m1 I0m0 W0m0\n"
            "F1m0 F1m1 F1m2 I1m2 W1m2 I1m1 W1m1 I1m0 W1m0\n");
}

TEST(Gpipe, RefusesVirtualStages) {
  EXPECT_EQ(GpipeOrder({.virtual_stages = 3}).status().message(),
            "parallelism.virtual_stages: gpipe has 1 stage a rank, not 3; "
            "leave it out");
}

}  // namespace
}  // namespace troupe
