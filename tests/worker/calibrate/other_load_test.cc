#include "worker/calibrate/other_load.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(OtherLoad, CountsAllButIdleAndWaiting) {
  EXPECT_EQ(BusyTicks("cpu  10 20 30 1000 500 1 2 3 99 99\ncpu0 7 7 7\n"), 66);
  EXPECT_EQ(BusyTicks("cpu 1 2"), 3);
  EXPECT_EQ(BusyTicks("intr 1 2"), 0);
  EXPECT_EQ(BusyTicks(""), 0);
}

TEST(OtherLoad, IsAShare) {
  const OtherLoad load;
  volatile double sum = 0;
  for (int i = 0; i < 20000000; ++i) sum = sum + i;
  EXPECT_GE(load.Share(), 0.0);
  EXPECT_LE(load.Share(), 1.0);
}

}  // namespace
}  // namespace troupe
