#include "scheduler/simulate/rates.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

void Add(Calibration& calibration, int64_t size, double rate,
         ElementType dtype = F32) {
  MatmulRate& matmul = *calibration.add_matmul();
  matmul.set_dtype(dtype);
  matmul.set_m(size);
  matmul.set_n(size);
  matmul.set_k(size);
  matmul.set_flops_per_second(rate);
}

double Rate(const Calibration& calibration, int64_t size) {
  return MatmulFlopsPerSecond(calibration, F32,
                              {.m = size, .n = size, .k = size});
}

TEST(Rates, ProductsInterpolateBetweenMeasuredSizes) {
  Calibration calibration;
  Add(calibration, 1024, 40e9);
  Add(calibration, 64, 10e9);
  Add(calibration, 256, 30e9);
  EXPECT_DOUBLE_EQ(Rate(calibration, 64), 10e9);
  EXPECT_DOUBLE_EQ(Rate(calibration, 256), 30e9);
  EXPECT_DOUBLE_EQ(Rate(calibration, 1024), 40e9);
  // 128 is half way between 64 and 256 in the logarithm.
  EXPECT_NEAR(Rate(calibration, 128), 20e9, 1);
  EXPECT_NEAR(Rate(calibration, 512), 35e9, 1);
  EXPECT_DOUBLE_EQ(Rate(calibration, 8), 10e9);
  EXPECT_DOUBLE_EQ(Rate(calibration, 1 << 20), 40e9);
}

TEST(Rates, DtypesDoNotMix) {
  Calibration calibration;
  Add(calibration, 64, 10e9);
  Add(calibration, 64, 80e9, BF16);
  EXPECT_DOUBLE_EQ(Rate(calibration, 64), 10e9);
  EXPECT_DOUBLE_EQ(
      MatmulFlopsPerSecond(calibration, BF16, {.m = 1, .n = 1, .k = 1}), 80e9);
}

TEST(Rates, TheBestOfTwoMeasurementsCounts) {
  Calibration calibration;
  Add(calibration, 64, 10e9);
  Add(calibration, 64, 12e9);
  EXPECT_DOUBLE_EQ(Rate(calibration, 64), 12e9);
}

TEST(Rates, WhatIsMissingComesFromTheDefault) {
  Calibration calibration;
  calibration.set_memory_bytes_per_second(7);
  const Calibration full = CompletedCalibration(calibration);
  EXPECT_EQ(full.memory_bytes_per_second(), 7);
  EXPECT_EQ(full.matmul_size(), 2);  // one of each precision
  EXPECT_EQ(full.matmul(1).dtype(), BF16);
  EXPECT_EQ(full.attention_bf16_flops_per_second(),
            full.attention_flops_per_second());
  EXPECT_EQ(full.threads(), 1);
  EXPECT_GT(full.attention_flops_per_second(), 0);
  EXPECT_GT(full.attention_backward_flops_per_second(), 0);
  EXPECT_GT(full.optimizer_bytes_per_second(), 0);
  EXPECT_GT(full.elementwise_ops_per_second(), 0);
  EXPECT_GT(full.loopback().bytes_per_second(), 0);
}

TEST(Rates, AllReduceIsARing) {
  LinkRate link;
  link.set_latency_us(100);
  link.set_bytes_per_second(1e6);
  EXPECT_EQ(AllReduceSeconds(link, {.bytes = 1000, .ranks = 1}), 0);
  EXPECT_EQ(AllReduceBytesSent({.bytes = 1000, .ranks = 1}), 0);
  EXPECT_EQ(AllReduceBytesSent({.bytes = 1000, .ranks = 2}), 1000);
  EXPECT_EQ(AllReduceBytesSent({.bytes = 1000, .ranks = 4}), 1500);
  EXPECT_DOUBLE_EQ(AllReduceSeconds(link, {.bytes = 1000, .ranks = 4}),
                   6 * 100e-6 + 1500e-6);
}

}  // namespace
}  // namespace troupe
