// FlashAttention-2's forward (2307.08691, algorithm 1). A block of threads owns
// a tile of queries of one head and goes through the keys that they see, tile
// by tile, with the softmax of what came so far in registers.
//
// K and V have one buffer each, filled in turn: V arrives while the scores are
// computed, the next K while the weights meet V. The last queries of a causal
// mask have the most keys: their blocks start first.
#include "ops/cuda/attention_kernels.h"
#include "ops/cuda/attention_products.h"
#include "ops/cuda/attention_result.h"
#include "ops/cuda/attention_softmax.h"

namespace troupe::cuda {
namespace {

template <typename Products>
struct Layout {
  using Mask = DropoutTile<Products::kRows, Products::kColumns>;
  static constexpr int kBytes = Products::RowTile::kBytes +
                                2 * Products::ColumnTile::kBytes +
                                Products::kExchangeBytes + Mask::kBytes;

  typename Products::RowTile q;  // in the end o
  typename Products::ColumnTile k, v;
  float* exchange;
  Mask mask;

  __device__ Layout() {
    SharedMemory memory;
    q = memory.Take<typename Products::RowTile>();
    k = memory.Take<typename Products::ColumnTile>();
    v = memory.Take<typename Products::ColumnTile>();
    exchange = memory.Take<float>(Products::kExchangeBytes);
    mask.words = memory.Take<uint32_t>(Mask::kBytes);
  }
};

template <typename Products>
__device__ void DropOut(
    const DropoutTile<Products::kRows, Products::kColumns>& mask,
    typename Products::Scores& weights) {
#pragma unroll
  for (int i = 0; i < Products::kThreadRows; ++i) {
#pragma unroll
    for (int j = 0; j < Products::kThreadColumns; ++j) {
      if (!mask.Keeps(Products::Row(i), Products::Column(j))) weights[i][j] = 0;
    }
  }
}

// o and the logsumexp of a tile of queries.
template <typename Products, typename T>
__device__ void Finish(const RawAttention<T>& a, const Layout<Products>& shared,
                       const OnlineSoftmax<Products>& softmax,
                       const typename Products::Sums& sums, int query) {
  const int head = blockIdx.y, sample = blockIdx.z;
  const bool first = a.result.before.data == nullptr;
  float factor[Products::kThreadRows];
#pragma unroll
  for (int i = 0; i < Products::kThreadRows; ++i) {
    const float sum = SumOfRow<Products>(softmax.sum[i]);
    factor[i] = sum == 0 ? 0 : a.dropout.keep_scale / sum;
    const int at = query + Products::Row(i);
    if (a.logsumexp == nullptr || at >= a.q_length()) continue;
    if (Products::Dim(0) == 0 && (first || a.Seen(at) > 0)) {
      a.logsumexp[a.RowOf(sample, head, at)] =
          softmax.largest[i] * kLn2 + logf(sum);
    }
  }
  StoreRows<Products>(a.result, sample, head, a.head_dim, query, factor, sums,
                      shared.q);
}

template <typename Products>
__global__ void __launch_bounds__(Products::kThreads, 1)
    ForwardKernel(RawAttention<typename Products::Element> a) {
  constexpr int kThreads = Products::kThreads, kKeys = Products::kColumns;
  const int head = blockIdx.y, sample = blockIdx.z;
  const int kv_head = head / (a.heads / a.kv_heads);
  const int query = (gridDim.x - 1 - blockIdx.x) * Products::kRows;
  const int keys = a.SeenByTile(query, Products::kRows);
  const Layout<Products> shared;
  const auto fill_k = [&](int key) {
    shared.k.template Fill<kThreads>(
        a.k.From(sample, kv_head, a.head_dim, key));
  };
  shared.q.template Fill<kThreads>(a.q.From(sample, head, a.head_dim, query));
  fill_k(0);
  OnlineSoftmax<Products> softmax;
  typename Products::Sums sums = {};
  softmax.TakeUp(a, sample, head, query, sums);
  for (int key = 0; key < keys; key += kKeys) {
    WaitForCopies();
    __syncthreads();  // k is there, and nobody reads v any more
    shared.v.template Fill<kThreads>(
        a.v.From(sample, kv_head, a.head_dim, key));
    if (a.dropout.threshold != 0) {
      shared.mask.template Draw<kThreads>(a, sample, head, query, key);
    }
    typename Products::Scores scores;
    Products::Multiply(shared.q, shared.k, scores);
    HideFuture<Products>(a, query, key, scores);
    softmax.Weigh(a.scale * kLog2E, scores, sums);
    WaitForCopies();
    __syncthreads();  // v and the mask are there, nobody reads k any more
    if (key + kKeys < keys) fill_k(key + kKeys);
    if (a.dropout.threshold != 0) DropOut<Products>(shared.mask, scores);
    Products::AddProduct(scores, shared.v, shared.exchange, sums);
  }
  WaitForCopies();
  __syncthreads();  // q is there, even if there were no keys
  Finish<Products>(a, shared, softmax, sums, query);
}

}  // namespace

template <typename T>
void LaunchForward(CudaDevice& device, const RawAttention<T>& a) {
  WithAttentionProducts<T>(a.head_dim, [&]<typename All>() {
    using Products = typename All::Forward;
    Launch(
        device, ForwardKernel<Products>,
        {.grid = dim3(Blocks(a.q_length(), Products::kRows), a.heads, a.batch),
         .block = Products::kThreads,
         .shared_bytes = Layout<Products>::kBytes},
        a);
  });
}

template <typename T>
size_t SharedBytesOfForward(int head_dim) {
  size_t bytes = 0;
  WithAttentionProducts<T>(head_dim, [&]<typename All>() {
    bytes = Layout<typename All::Forward>::kBytes;
  });
  return bytes;
}

template size_t SharedBytesOfForward<float>(int head_dim);
template size_t SharedBytesOfForward<uint16_t>(int head_dim);
template size_t SharedBytesOfForward<Fp16>(int head_dim);

template void LaunchForward(CudaDevice&, const RawAttention<float>&);
template void LaunchForward(CudaDevice&, const RawAttention<uint16_t>&);
template void LaunchForward(CudaDevice&, const RawAttention<Fp16>&);

}  // namespace troupe::cuda
