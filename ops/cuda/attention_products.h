// Which products attention uses for which head dims, and what else its kernels
// share. A head dim between those below is padded with zeros to the next.
//
// The shapes of bf16 and fp16 are the largest whose sums, scores and fragments
// fit in the 255 registers that a thread can have on sm_80, sm_90a and sm_100
// alike (docs/cuda.md has the counts; none spills): 32 rows to a warp where
// there is one sum and room for it, 16 where there are two. A multiprocessor's
// 65536 registers then hold two blocks of 128 threads, whose eight warps, two
// on each of its four tensor cores, hide each other's softmax behind products;
// two blocks rather than one of twice the size, so that one computes while the
// other waits at its barrier. Of shared memory, of which an A100 has 163 KB and
// an H100 227, a block needs 33 to 50 KB for head dim 64, 49 to 97 for 128 and
// 97 to 129 for 256.
#ifndef TROUPE_OPS_CUDA_ATTENTION_PRODUCTS_H_
#define TROUPE_OPS_CUDA_ATTENTION_PRODUCTS_H_

#include "ops/cuda/attention_fma.h"
#include "ops/cuda/attention_heads.h"
#include "ops/cuda/attention_kernels.h"
#include "ops/cuda/attention_mma.h"
#include "ops/cuda/launch.h"
#include "proto/base/check.h"

namespace troupe::cuda {

// For a type of elements and a padded head dim. What is not f32 is of two
// bytes.
template <typename T, int kDim>
struct AttentionProducts;

template <typename Half>
struct AttentionProducts<Half, 64> {
  using Forward = MmaProducts<Half, 64, 2, 64>;
  using OfParts = MmaProducts<Half, 64, 1, 64>;
  using OfQueries = MmaProducts<Half, 64, 2, 32>;
  using OfKeys = MmaProducts<Half, 64, 1, 64>;
};
template <typename Half>
struct AttentionProducts<Half, 128> {
  using Forward = MmaProducts<Half, 128, 2, 32>;
  using OfParts = MmaProducts<Half, 128, 1, 64>;
  using OfQueries = MmaProducts<Half, 128, 1, 64>;
  using OfKeys = MmaProducts<Half, 128, 1, 32>;
};
template <typename Half>
struct AttentionProducts<Half, 256> {
  using Forward = MmaProducts<Half, 256, 1, 64>;
  using OfParts = MmaProducts<Half, 256, 1, 32>;
  using OfQueries = MmaProducts<Half, 256, 1, 32>;
  using OfKeys = MmaProducts<Half, 256, 1, 32, 2>;
};
template <>
struct AttentionProducts<float, 64> {
  using Forward = FmaProducts<64, 4, 4>;
  using OfParts = FmaProducts<64, 1, 4>;
  using OfQueries = FmaProducts<64, 4, 2>;
  using OfKeys = FmaProducts<64, 4, 2>;
};
template <>
struct AttentionProducts<float, 128> {
  using Forward = FmaProducts<128, 4, 4>;
  using OfParts = FmaProducts<128, 1, 4>;
  using OfQueries = FmaProducts<128, 4, 2>;
  using OfKeys = FmaProducts<128, 4, 2>;
};
template <>
struct AttentionProducts<float, 256> {
  using Forward = FmaProducts<256, 2, 2>;
  using OfParts = FmaProducts<256, 1, 2>;
  using OfQueries = FmaProducts<256, 2, 1>;
  using OfKeys = FmaProducts<256, 2, 1>;
};

// run.operator()<AttentionProducts<T, ...>>() for a head dim up to
// kAttentionHeadDimMax.
template <typename T, typename Run>
void WithAttentionProducts(int head_dim, Run&& run) {
  if (head_dim <= 64) {
    run.template operator()<AttentionProducts<T, 64>>();
  } else if (head_dim <= 128) {
    run.template operator()<AttentionProducts<T, 128>>();
  } else {
    CHECK_LE(head_dim, kAttentionHeadDimMax);
    run.template operator()<AttentionProducts<T, 256>>();
  }
}

inline unsigned Blocks(int64_t count, int of) {
  return static_cast<unsigned>((count + of - 1) / of);
}

// Scores of keys that a query does not see become -inf. Rows are queries from
// `query` on, columns keys from `key` on.
template <typename Products, typename T>
__device__ void HideFuture(const RawAttention<T>& a, int query, int key,
                           typename Products::Scores& scores) {
  if (a.Seen(query + Products::Row(0)) - key >= Products::kColumns) return;
#pragma unroll
  for (int i = 0; i < Products::kThreadRows; ++i) {
    const int seen = a.Seen(query + Products::Row(i)) - key;
#pragma unroll
    for (int j = 0; j < Products::kThreadColumns; ++j) {
      if (Products::Column(j) >= seen) scores[i][j] = -INFINITY;
    }
  }
}

// Over the columns of a thread's row; all lanes of the row get it.
template <typename Products>
__device__ float MaxOfRow(float x) {
#pragma unroll
  for (int lane = 1; lane < Products::kLanesOfRow; lane *= 2) {
    x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, lane));
  }
  return x;
}
template <typename Products>
__device__ float SumOfRow(float x) {
#pragma unroll
  for (int lane = 1; lane < Products::kLanesOfRow; lane *= 2) {
    x += __shfl_xor_sync(kAllLanes, x, lane);
  }
  return x;
}

}  // namespace troupe::cuda

#endif  // TROUPE_OPS_CUDA_ATTENTION_PRODUCTS_H_
