#include "scheduler/simulate/rates.h"

#include <algorithm>

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

TEST(Rates, ASizeHasTheRateOfItsNeighbours) {
  Calibration calibration;
  Add(calibration, 1024, 40e9);
  Add(calibration, 64, 10e9);
  EXPECT_NEAR(Rate(calibration, 64), 10e9, 1);
  EXPECT_NEAR(Rate(calibration, 1024), 40e9, 1);
  EXPECT_NEAR(Rate(calibration, 256), 25e9, 1);  // half way in the logarithm
  // A quarter of the way: weights 3^4 and 1.
  EXPECT_NEAR(Rate(calibration, 128), (81 * 10e9 + 40e9) / 82, 1);
  EXPECT_LT(Rate(calibration, 8), 11e9);
  EXPECT_GT(Rate(calibration, 1 << 20), 35e9 / 2);
}

TEST(Rates, FormsHaveRatesOfTheirOwn) {
  Calibration calibration;
  Add(calibration, 64, 10e9);
  Add(calibration, 64, 7e9);
  calibration.mutable_matmul(1)->set_form(TRANSPOSED);
  const auto rate = [&](ProductForm form) {
    return MatmulFlopsPerSecond(calibration, F32,
                                {.m = 64, .n = 64, .k = 64, .form = form});
  };
  EXPECT_DOUBLE_EQ(rate(PLAIN), 10e9);
  EXPECT_DOUBLE_EQ(rate(TRANSPOSED), 7e9);
  EXPECT_NEAR(rate(GRADIENT), 8.5e9, 1);  // not measured: that of the others
}

TEST(Rates, AttentionHasTheRateOfItsLengthAndHeads) {
  Calibration calibration;
  for (const int64_t length : {64, 256}) {
    AttentionRate& rate = *calibration.add_attention();
    rate.set_dtype(F32);
    rate.set_length(length);
    rate.set_head_dim(64);
    rate.set_forward_flops_per_second(1e9 * length);
    rate.set_backward_flops_per_second(2e9 * length);
  }
  const auto at = [&](int64_t length) {
    return AttentionRateOf(calibration, F32,
                           {.length = length, .head_dim = 64});
  };
  EXPECT_NEAR(at(64).forward, 64e9, 1);
  EXPECT_NEAR(at(256).backward, 512e9, 1);
  EXPECT_NEAR(at(128).forward, 160e9, 1);
}

TEST(Rates, DtypesDoNotMix) {
  Calibration calibration;
  Add(calibration, 64, 10e9);
  Add(calibration, 64, 80e9, BF16);
  EXPECT_NEAR(Rate(calibration, 64), 10e9, 1);
  EXPECT_DOUBLE_EQ(
      MatmulFlopsPerSecond(calibration, BF16, {.m = 1, .n = 1, .k = 1}), 80e9);
}

// fp16 is multiplied in f32: at the rate of bf16 where that is, too.
TEST(Rates, Fp16IsAsWhatConvertsToF32) {
  for (const double bf16 : {8e9, 80e9}) {
    Calibration calibration;
    Add(calibration, 64, 10e9);
    Add(calibration, 64, bf16, BF16);
    EXPECT_DOUBLE_EQ(MatmulFlopsPerSecond(CompletedCalibration(calibration),
                                          F16, {.m = 64, .n = 64, .k = 64}),
                     std::min(bf16, 10e9));
  }
}

// On a GPU, which measures it.
TEST(Rates, Fp16IsAsItWasMeasured) {
  Calibration calibration;
  Add(calibration, 64, 10e9);
  Add(calibration, 64, 80e9, BF16);
  Add(calibration, 64, 70e9, F16);
  EXPECT_DOUBLE_EQ(MatmulFlopsPerSecond(CompletedCalibration(calibration), F16,
                                        {.m = 64, .n = 64, .k = 64}),
                   70e9);
}

TEST(Rates, WhatIsMissingComesFromTheDefault) {
  Calibration calibration;
  calibration.set_memory_bytes_per_second(7);
  const Calibration full = CompletedCalibration(calibration);
  EXPECT_EQ(full.memory_bytes_per_second(), 7);
  EXPECT_EQ(full.matmul_size(), 3);  // one of each precision
  EXPECT_EQ(full.matmul(1).dtype(), BF16);
  EXPECT_EQ(full.matmul(2).dtype(), F16);
  ASSERT_EQ(full.attention_size(), 3);
  EXPECT_EQ(full.attention(1).dtype(), BF16);
  EXPECT_EQ(full.memory_bf16_bytes_per_second(), 7);
  EXPECT_EQ(full.threads(), 1);
  EXPECT_GT(full.attention(0).forward_flops_per_second(), 0);
  EXPECT_GT(full.attention(0).backward_flops_per_second(), 0);
  EXPECT_GT(full.optimizer_bytes_per_second(), 0);
  EXPECT_GT(full.elementwise_ops_per_second(), 0);
  EXPECT_GT(full.loopback().bytes_per_second(), 0);
}

TEST(Rates, CollectivesSendWhatARingDoes) {
  EXPECT_EQ(CollectiveBytesSent({.bytes = 1000, .ranks = 1}), 0);
  EXPECT_EQ(CollectiveBytesSent({.bytes = 1000, .ranks = 2}), 1000);
  EXPECT_EQ(CollectiveBytesSent({.bytes = 1000, .ranks = 4}), 1500);
}

}  // namespace
}  // namespace troupe
