#include "ops/cuda/attention_limits.h"

#include "gtest/gtest.h"
#include "proto/base/gpu_limits.h"

namespace troupe::cuda {
namespace {

constexpr size_t kKiB = 1024;
constexpr DType kTypes[] = {DType::kF32, DType::kBF16, DType::kF16};

TEST(AttentionLimits, AllUpToTheWidestRun) {
  for (const DType type : kTypes) {
    for (size_t shared = 0; shared <= 256 * kKiB; shared += kKiB) {
      const int widest = AttentionHeadDimMax(type, shared);
      for (int dim = 1; dim <= widest; ++dim) {
        ASSERT_LE(AttentionSharedBytes(type, dim), shared) << dim;
      }
      if (widest == kGpuHeadDimMax) continue;
      EXPECT_GT(AttentionSharedBytes(type, widest + 1), shared) << widest;
    }
  }
}

// What blocks may have by compute capability, as the CUDA C++ programming guide
// says: 163 KiB in 8.0, 227 in 9.0 and 10.0, 99 in 8.6, 8.9 and 12.0.
TEST(AttentionLimits, OfTheGenerationsThatThereAre) {
  for (const size_t data_center : {163 * kKiB, 227 * kKiB}) {
    for (const DType type : kTypes) {
      EXPECT_EQ(AttentionHeadDimMax(type, data_center), kGpuHeadDimMax);
    }
  }
  EXPECT_EQ(AttentionHeadDimMax(DType::kF32, 99 * kKiB), 64);
  EXPECT_EQ(AttentionHeadDimMax(DType::kBF16, 99 * kKiB), 128);
}

// Workers say the limit of both as one.
TEST(AttentionLimits, AreTheSameInBf16AndFp16) {
  for (const int dim : {1, 64, 65, 128, 129, kGpuHeadDimMax}) {
    EXPECT_EQ(AttentionSharedBytes(DType::kF16, dim),
              AttentionSharedBytes(DType::kBF16, dim));
  }
}

TEST(AttentionLimits, ToTheByte) {
  for (const DType type : kTypes) {
    const size_t narrowest = AttentionSharedBytes(type, 1);
    EXPECT_EQ(AttentionHeadDimMax(type, narrowest), 64);
    EXPECT_EQ(AttentionHeadDimMax(type, narrowest - 1), 0);
  }
}

}  // namespace
}  // namespace troupe::cuda
