#include "worker/calibrate/calibrate_gpu.h"

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/ops/split_memory_device.h"

namespace troupe {
namespace {

// On a device whose queues run late, as a GPU's do.
TEST(CalibrateGpu, AddsProductsThatFillAGpu) {
  SplitMemoryDevice device({.threads = 1});
  const RealClock clock;
  const absl::StatusOr<Calibration> calibration =
      CalibrateGpu(device, clock,
                   {.compute = {.each = absl::Milliseconds(1), .shrink = 64},
                    .link = {.bytes = 1 << 16, .repeats = 1}});
  ASSERT_TRUE(calibration.ok()) << calibration.status();
  int64_t largest = 0;
  for (const MatmulRate& rate : calibration->matmul()) {
    EXPECT_GT(rate.flops_per_second(), 0);
    largest = std::max(largest, rate.m() * rate.n() * rate.k());
  }
  EXPECT_EQ(largest, int64_t{128} * 128 * 128);
  EXPECT_GT(calibration->attention_size(), 0);
  EXPECT_GT(calibration->instruction_overhead_us(), 0);
}

TEST(CalibrateGpu, IsKeptByTheGpusName) {
  EXPECT_TRUE(absl::EndsWith(GpuCalibrationFile("NVIDIA H200"),
                             "/troupe/calibration-nvidia-h200.textproto"))
      << GpuCalibrationFile("NVIDIA H200");
  EXPECT_EQ(GpuCalibrationDevice("NVIDIA H200"), "cuda NVIDIA H200, v3");
}

}  // namespace
}  // namespace troupe
