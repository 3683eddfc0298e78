#include "scheduler/pipelines/zb_h1.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(ZbH1, WeightsFillTheGaps) {
  EXPECT_EQ(ComputeOrderText(*ZbH1Order({.ranks = 3, .micro_batches = 4})),
            "F0m0 F0m1 F0m2 I0m0 W0m0 F0m3 I0m1 W0m1 I0m2 W0m2 I0m3 W0m3\n"
            "F1m0 F1m1 I1m0 F1m2 I1m1 W1m0 F1m3 I1m2 W1m1 I1m3 W1m2 W1m3\n"
            "F2m0 I2m0 F2m1 I2m1 F2m2 I2m2 W2m0 F2m3 I2m3 W2m1 W2m2 W2m3\n");
}

TEST(ZbH1, RefusesVirtualStages) {
  EXPECT_EQ(ZbH1Order({.virtual_stages = 2}).status().message(),
            "parallelism.virtual_stages: zb_h1 has 1 stage a rank, not 2; "
            "leave it out");
}

}  // namespace
}  // namespace troupe
