#include "worker/calibrate/compute_rate.h"

#include "gtest/gtest.h"
#include "ops/cpu/device.h"

namespace troupe {
namespace {

TEST(ComputeRate, EveryRateIsMeasured) {
  const std::unique_ptr<Device> device = NewCpuDevice({.threads = 1});
  const RealClock clock;
  Calibration calibration;
  const absl::Status status = MeasureComputeRates(
      *device, clock, {.each = absl::Milliseconds(1), .shrink = 16},
      calibration);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_GE(calibration.matmul_size(), 10);
  EXPECT_EQ(calibration.matmul(0).dtype(), F32);
  EXPECT_EQ(calibration.matmul(calibration.matmul_size() - 1).dtype(), BF16);
  for (const MatmulRate& rate : calibration.matmul()) {
    EXPECT_GT(rate.m(), 0);
    EXPECT_GT(rate.n(), 0);
    EXPECT_GT(rate.k(), 0);
    EXPECT_GT(rate.flops_per_second(), 0);
  }
  EXPECT_GT(calibration.attention_flops_per_second(), 0);
  EXPECT_GT(calibration.attention_backward_flops_per_second(), 0);
  EXPECT_GT(calibration.memory_bytes_per_second(), 0);
  EXPECT_GT(calibration.optimizer_bytes_per_second(), 0);
  EXPECT_GT(calibration.elementwise_ops_per_second(), 0);
  EXPECT_GT(calibration.attention_bf16_flops_per_second(), 0);
  EXPECT_GT(calibration.attention_backward_bf16_flops_per_second(), 0);
  EXPECT_GT(calibration.elementwise_bf16_ops_per_second(), 0);
}

TEST(ComputeRate, SecondsOfIsTheFastestCall) {
  ManualClock clock;
  int calls = 0;
  // The first call is slow and does not count; of the others every third is
  // slow.
  const double seconds = SecondsOf(clock, absl::Milliseconds(100), [&] {
    clock.Advance(calls == 0       ? absl::Seconds(1)
                  : calls % 3 == 0 ? absl::Milliseconds(9)
                                   : absl::Milliseconds(4));
    ++calls;
  });
  EXPECT_DOUBLE_EQ(seconds, 0.004);
}

}  // namespace
}  // namespace troupe
