#include "scheduler/pipelines/zb_h2.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(ZbH2, TwiceAsManyForwardsFirst) {
  EXPECT_EQ(ComputeOrderText(*ZbH2Order({.ranks = 2, .micro_batches = 4})),
            "F0m0 F0m1 F0m2 I0m0 W0m0 F0m3 I0m1 W0m1 I0m2 W0m2 I0m3 W0m3\n"
            "F1m0 I1m0 F1m1 I1m1 F1m2 I1m2 W1m0 F1m3 I1m3 W1m1 W1m2 W1m3\n");
}

TEST(ZbH2, RefusesVirtualStages) {
  EXPECT_EQ(ZbH2Order({.virtual_stages = 2}).status().message(),
            "parallelism.virtual_stages: zb_h2 has 1 stage a rank, not 2; "
            "leave it out");
}

}  // namespace
}  // namespace troupe
