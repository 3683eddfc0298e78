#include "ops/cuda/attention_by_cudnn.h"

#include "gtest/gtest.h"
#include "proto/base/gpu_limits.h"

namespace troupe::cuda {
namespace {

struct Case {
  int64_t batch, length;
  int heads, kv_heads, head_dim;
};

// Nothing is read of what the tensors hold.
AttentionBackwardArgs ArgsOf(const Case& c) {
  void* const somewhere = reinterpret_cast<void*>(256);
  const Tensor q(somewhere, DType::kBF16,
                 {c.batch, c.length, int64_t{c.heads} * c.head_dim});
  const Tensor k(somewhere, DType::kBF16,
                 {c.batch, c.length, int64_t{c.kv_heads} * c.head_dim});
  return {.q = q, .k = k, .heads = c.heads, .kv_heads = c.kv_heads};
}

int64_t BytesOf(const Case& c, const AttentionCut& cut) {
  const int64_t sharing = c.heads / c.kv_heads;
  return GpuAttentionWorkBytes({.heads = cut.samples * cut.kv_heads * sharing,
                                .q_length = c.length,
                                .kv_length = c.length,
                                .head_dim = c.head_dim,
                                .shared_keys = sharing > 1});
}

// GPT-2 124M: 24 MiB a sample.
TEST(AttentionByCudnn, ABackwardIsCutAlongSamples) {
  EXPECT_EQ(CutOf(ArgsOf({16, 1024, 12, 12, 64})), (AttentionCut{16, 12}));
  EXPECT_EQ(CutOf(ArgsOf({96, 1024, 12, 12, 64})), (AttentionCut{32, 12}));
  EXPECT_EQ(CutOf(ArgsOf({97, 1024, 12, 12, 64})), (AttentionCut{1, 12}));
}

// A Llama with 32 heads: 32 MiB each at 4,096, 128 at 8,192, 512 at 16,384.
TEST(AttentionByCudnn, AndWhereASampleIsTooMuchAlongHeadsOfKeys) {
  EXPECT_EQ(CutOf(ArgsOf({4, 4096, 32, 8, 128})), (AttentionCut{1, 8}));
  EXPECT_EQ(CutOf(ArgsOf({2, 8192, 32, 32, 64})), (AttentionCut{1, 8}));
  EXPECT_EQ(CutOf(ArgsOf({1, 8192, 32, 8, 128})), (AttentionCut{1, 2}));
  EXPECT_EQ(CutOf(ArgsOf({1, 16384, 32, 8, 128})), AttentionCut());
}

TEST(AttentionByCudnn, EachCallStaysBelowTheBound) {
  for (const int64_t length : {1, 100, 1024, 3000, 8192, 16384}) {
    for (const int kv_heads : {1, 2, 6, 12}) {
      const Case c = {6, length, 12, kv_heads, 64};
      const AttentionCut cut = CutOf(ArgsOf(c));
      if (cut == AttentionCut()) {
        EXPECT_GT(BytesOf(c, {1, 1}), kGpuAttentionWorkBytesMax) << length;
        continue;
      }
      EXPECT_LE(BytesOf(c, cut), kGpuAttentionWorkBytesMax) << length;
      EXPECT_EQ(c.batch % cut.samples, 0);
      EXPECT_EQ(c.kv_heads % cut.kv_heads, 0);
    }
  }
}

}  // namespace
}  // namespace troupe::cuda
