#include "proto/base/gpu_limits.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

// Samples, length, heads, heads of keys, columns of a head.
GpuAttentionShape Shape(int64_t samples, int64_t length, int64_t heads,
                        int64_t kv_heads, int64_t head_dim) {
  return {.samples = samples,
          .heads = heads,
          .kv_heads = kv_heads,
          .q_length = length,
          .kv_length = length,
          .head_dim = head_dim};
}

// GPT-2 124M: 24 MiB a sample.
TEST(GpuAttentionCall, OfSomeSamples) {
  EXPECT_EQ(GpuAttentionCall(Shape(16, 1024, 12, 12, 64)),
            Shape(16, 1024, 12, 12, 64));
  EXPECT_EQ(GpuAttentionCall(Shape(96, 1024, 12, 12, 64)),
            Shape(32, 1024, 12, 12, 64));
  EXPECT_EQ(GpuAttentionCall(Shape(97, 1024, 12, 12, 64)),
            Shape(1, 1024, 12, 12, 64));
}

// A Llama with 32 heads: 32 MiB each at 4,096, 128 at 8,192, 512 at 16,384.
TEST(GpuAttentionCall, OfSomeHeadsWhereASampleIsTooMuch) {
  EXPECT_EQ(GpuAttentionCall(Shape(4, 4096, 32, 8, 128)),
            Shape(1, 4096, 32, 8, 128));
  EXPECT_EQ(GpuAttentionCall(Shape(2, 8192, 32, 32, 64)),
            Shape(1, 8192, 8, 8, 64));
  EXPECT_EQ(GpuAttentionCall(Shape(1, 8192, 32, 8, 128)),
            Shape(1, 8192, 8, 2, 128));
  EXPECT_EQ(GpuAttentionCall(Shape(1, 16384, 32, 8, 128)).samples, 0);
}

TEST(GpuAttentionCall, IsNoneOfWhatCudnnDoesNotTake) {
  EXPECT_EQ(GpuAttentionCall(Shape(2, 128, 4, 4, 128)).samples, 2);
  EXPECT_EQ(GpuAttentionCall(Shape(2, 128, 4, 4, 136)).samples, 0);
  EXPECT_EQ(GpuAttentionCall(Shape(2, 128, 4, 4, 60)).samples, 0);
  EXPECT_EQ(GpuAttentionCall(Shape(2, 1, 4, 4, 64)).samples, 0);
  EXPECT_EQ(GpuAttentionCall(Shape(0, 128, 4, 4, 64)).samples, 0);
}

TEST(GpuAttentionCall, StaysBelowTheBound) {
  for (const int64_t length : {2, 100, 1024, 3000, 8192, 16384}) {
    for (const int64_t kv_heads : {1, 2, 6, 12}) {
      const GpuAttentionShape whole = Shape(6, length, 12, kv_heads, 64);
      const GpuAttentionShape call = GpuAttentionCall(whole);
      if (call.samples == 0) {
        EXPECT_GT(GpuAttentionWorkBytes(Shape(1, length, 12 / kv_heads, 1, 64)),
                  kGpuAttentionWorkBytesMax)
            << length;
        continue;
      }
      EXPECT_LE(GpuAttentionWorkBytes(call), kGpuAttentionWorkBytesMax)
          << length;
      EXPECT_EQ(whole.samples % call.samples, 0);
      EXPECT_EQ(whole.kv_heads % call.kv_heads, 0);
      EXPECT_EQ(call.heads / call.kv_heads, whole.heads / whole.kv_heads);
    }
  }
}

}  // namespace
}  // namespace troupe
