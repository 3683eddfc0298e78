#include "proto/base/clock.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Clock, ManualStandsStillUntilAdvanced) {
  ManualClock clock(absl::FromUnixSeconds(100));
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(100));
  clock.Advance(absl::Milliseconds(5));
  EXPECT_EQ(clock.Now() - absl::FromUnixSeconds(100), absl::Milliseconds(5));
}

TEST(Clock, OnlyWallTimeSteps) {
  ManualClock clock(absl::FromUnixSeconds(100));
  const int64_t before = clock.MonotonicNanos();
  clock.Step(-absl::Seconds(60));
  EXPECT_EQ(clock.Now(), absl::FromUnixSeconds(40));
  EXPECT_EQ(clock.MonotonicNanos(), before);
}

TEST(Clock, RealOneNeverGoesBack) {
  const RealClock clock;
  const int64_t first = clock.MonotonicNanos();
  EXPECT_GE(clock.MonotonicNanos(), first);
  EXPECT_GT(clock.Now(), absl::FromUnixSeconds(0));
}

}  // namespace
}  // namespace troupe
