#include "worker/calibrate/machine_probe.h"

#include "gtest/gtest.h"
#include "ops/cpu/device.h"

namespace troupe {
namespace {

// Moves while something runs.
class WorkClock final : public Clock {
 public:
  int64_t MonotonicNanos() const override { return now; }
  absl::Time Now() const override { return absl::UnixEpoch(); }

  int64_t now = 0;
};

TEST(MachineProbe, TheSecondRunCounts) {
  WorkClock clock;
  int runs = 0;
  EXPECT_DOUBLE_EQ(
      SecondRunUs(clock, [&] { clock.now += ++runs == 1 ? 900'000 : 20'000; }),
      20);
  EXPECT_EQ(runs, 2);
}

TEST(MachineProbe, TakesTime) {
  const RealClock clock;
  EXPECT_GT(ProbeUs(clock), 0);
  const auto device = NewCpuDevice({.threads = 2});
  const auto us = CalibrateProbeUs(*device, clock);
  ASSERT_TRUE(us.ok()) << us.status();
  EXPECT_GT(*us, 0);
}

}  // namespace
}  // namespace troupe
