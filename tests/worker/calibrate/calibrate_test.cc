#include "worker/calibrate/calibrate.h"

#include "gtest/gtest.h"
#include "ops/cpu/device.h"

namespace troupe {
namespace {

TEST(Calibrate, FillsEverythingThatThePlannerReads) {
  const std::unique_ptr<Device> device = NewCpuDevice({.threads = 1});
  const RealClock clock;
  const absl::StatusOr<Calibration> calibration =
      Calibrate(*device, clock,
                {.compute = {.each = absl::Milliseconds(1), .shrink = 16},
                 .link = {.bytes = 1 << 16, .repeats = 1}});
  ASSERT_TRUE(calibration.ok()) << calibration.status();
  EXPECT_GT(calibration->matmul_size(), 0);
  EXPECT_GT(calibration->instruction_overhead_us(), 0);
  EXPECT_GT(calibration->loopback().bytes_per_second(), 0);
}

}  // namespace
}  // namespace troupe
