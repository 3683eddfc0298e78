#include "worker/calibrate/calibrate_gpu.h"

#include <algorithm>
#include <map>

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
  std::map<ElementType, int64_t> largest;
  for (const MatmulRate& rate : calibration->matmul()) {
    EXPECT_GT(rate.flops_per_second(), 0);
    int64_t& of_type = largest[rate.dtype()];
    of_type = std::max(of_type, rate.m() * rate.n() * rate.k());
  }
  constexpr int64_t kLargest = int64_t{128} * 128 * 128;
  EXPECT_EQ(largest, (std::map<ElementType, int64_t>{
                         {F32, kLargest}, {BF16, kLargest}, {F16, kLargest}}));
  EXPECT_GT(calibration->attention_size(), 0);
  EXPECT_GT(calibration->instruction_overhead_us(), 0);
}

TEST(CalibrateGpu, IsKeptByTheGpusName) {
  EXPECT_TRUE(absl::EndsWith(GpuCalibrationFile("NVIDIA H200"),
                             "/troupe/calibration-nvidia-h200.textproto"))
      << GpuCalibrationFile("NVIDIA H200");
  Gpu gpu;
  gpu.set_name("NVIDIA H200");
  EXPECT_EQ(GpuCalibrationDevice(gpu), "cuda NVIDIA H200, no cuDNN, v5");
  gpu.set_cudnn_version("9.19.0");
  EXPECT_EQ(GpuCalibrationDevice(gpu), "cuda NVIDIA H200, cuDNN 9.19.0, v5");
}

}  // namespace
}  // namespace troupe
