#include "worker/calibrate/compute_rate.h"

#include <set>

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
  EXPECT_GE(calibration.attention_size(), 8);
  for (const AttentionRate& rate : calibration.attention()) {
    EXPECT_GT(rate.length(), 0);
    EXPECT_GT(rate.head_dim(), 0);
    EXPECT_GT(rate.forward_flops_per_second(), 0);
    EXPECT_GT(rate.backward_flops_per_second(), 0);
  }
  std::set<ProductForm> forms;
  for (const MatmulRate& rate : calibration.matmul()) forms.insert(rate.form());
  EXPECT_EQ(forms.size(), 3u);
  EXPECT_GT(calibration.memory_bytes_per_second(), 0);
  EXPECT_GT(calibration.memory_bf16_bytes_per_second(), 0);
  EXPECT_GT(calibration.optimizer_bytes_per_second(), 0);
  EXPECT_GT(calibration.elementwise_ops_per_second(), 0);
  EXPECT_GT(calibration.elementwise_bf16_ops_per_second(), 0);
}

}  // namespace
}  // namespace troupe
