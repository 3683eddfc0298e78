#include "worker/calibrate/machine_probe.h"

#include "gtest/gtest.h"
#include "ops/cpu/device.h"

namespace troupe {
namespace {

// Moves by a microsecond at each look.
class TickingClock final : public Clock {
 public:
  int64_t MonotonicNanos() const override { return now_ += 1000; }
  absl::Time Now() const override { return absl::UnixEpoch(); }

 private:
  mutable int64_t now_ = 0;
};

TEST(MachineProbe, IsTheTimeOfItsSecondRun) {
  EXPECT_DOUBLE_EQ(ProbeUs(TickingClock()), 1);
}

TEST(MachineProbe, CalibratesBesideProducts) {
  const auto device = NewCpuDevice({.threads = 2});
  const auto us = CalibrateProbeUs(*device, TickingClock());
  ASSERT_TRUE(us.ok()) << us.status();
  EXPECT_DOUBLE_EQ(*us, 1);
}

}  // namespace
}  // namespace troupe
