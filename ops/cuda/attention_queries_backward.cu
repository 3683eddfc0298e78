// The gradient of q. FlashAttention-2 adds to dQ from the blocks that own keys,
// with atomics whose order, and so the sum's rounding, differs from run to run.
// Here a block of threads owns a tile of queries and goes through the keys that
// they see; it computes the scores once more (7 products where 5 would do), and
// its sums have one order.
//
//   P = exp(scale Q K^T - logsumexp),  dS = P o (D o dO V^T - delta),
//   dQ = scale dS K,  with D the factors of dropout
#include "ops/cuda/attention_kernels.h"
#include "ops/cuda/attention_products.h"
#include "ops/cuda/attention_result.h"

namespace troupe::cuda {
namespace {

// The tiles that come and go; while one stage is worked on, the other fills.
template <typename Products>
struct Stage {
  using Mask = DropoutTile<Products::kRows, Products::kColumns>;
  static constexpr int kBytes = 2 * Products::ColumnTile::kBytes + Mask::kBytes;

  typename Products::ColumnTile k, v;
  Mask mask;

  __device__ Stage(SharedMemory memory, int which) {
    memory.template Take<char>(which * kBytes);
    k = memory.Take<typename Products::ColumnTile>();
    v = memory.Take<typename Products::ColumnTile>();
    mask.words = memory.Take<uint32_t>(Mask::kBytes);
  }

  // Begins to fetch the keys from `key` on for the queries from `query` on.
  template <typename T>
  __device__ void Fill(const RawAttention<T>& a, int query, int key) const {
    constexpr int kThreads = Products::kThreads;
    const int head = blockIdx.y, sample = blockIdx.z;
    const int kv_head = head / (a.heads / a.kv_heads);
    k.template Fill<kThreads>(a.k.From(sample, kv_head, a.head_dim, key));
    v.template Fill<kThreads>(a.v.From(sample, kv_head, a.head_dim, key));
    if (a.dropout.threshold != 0) {
      mask.template Draw<kThreads>(a, sample, head, query, key);
    }
  }
};

template <typename Products>
constexpr int kSharedBytes =
    2 * Products::RowTile::kBytes + Products::kExchangeBytes +
    2 * Stage<Products>::kBytes;

// Of a thread's rows.
template <typename Products>
struct RowScalars {
  float logsumexp[Products::kThreadRows];  // in powers of 2
  float delta[Products::kThreadRows];

  template <typename T>
  __device__ RowScalars(const RawAttention<T>& a, int query) {
#pragma unroll
    for (int i = 0; i < Products::kThreadRows; ++i) {
      const int at = query + Products::Row(i);
      const bool present = at < a.q_length();
      const int64_t row = a.RowOf(blockIdx.z, blockIdx.y, present ? at : 0);
      logsumexp[i] = present ? a.logsumexp[row] * kLog2E : 0;
      delta[i] = present ? a.delta[row] : 0;
    }
  }
};

// gradients: dO V^T, becomes dS.
template <typename Products, typename T>
__device__ void GradientsOfScores(const RawAttention<T>& a,
                                  const RowScalars<Products>& rows,
                                  const typename Stage<Products>::Mask& mask,
                                  const typename Products::Scores& scores,
                                  typename Products::Scores& gradients) {
  const bool dropout = a.dropout.threshold != 0;
#pragma unroll
  for (int i = 0; i < Products::kThreadRows; ++i) {
#pragma unroll
    for (int j = 0; j < Products::kThreadColumns; ++j) {
      const float p =
          Exp2(fmaf(scores[i][j], a.scale * kLog2E, -rows.logsumexp[i]));
      float dp = gradients[i][j] * a.dropout.keep_scale;
      if (dropout && !mask.Keeps(Products::Row(i), Products::Column(j))) dp = 0;
      gradients[i][j] = p * (dp - rows.delta[i]);
    }
  }
}

template <typename Products>
__global__ void __launch_bounds__(Products::kThreads, 1)
    GradientOfQueriesKernel(RawAttention<typename Products::Element> a) {
  constexpr int kThreads = Products::kThreads, kKeys = Products::kColumns;
  const int head = blockIdx.y, sample = blockIdx.z;
  // The last queries have the most keys and come first.
  const int query = (gridDim.x - 1 - blockIdx.x) * Products::kRows;
  const int keys = a.SeenByTile(query, Products::kRows);
  SharedMemory memory;
  const auto q = memory.Take<typename Products::RowTile>();
  const auto d_o = memory.Take<typename Products::RowTile>();
  float* exchange = memory.Take<float>(Products::kExchangeBytes);
  q.template Fill<kThreads>(a.q.From(sample, head, a.head_dim, query));
  d_o.template Fill<kThreads>(a.d_o.From(sample, head, a.head_dim, query));
  Stage<Products>(memory, 0).Fill(a, query, 0);
  const RowScalars<Products> rows(a, query);
  typename Products::Sums sums = {};
  int which = 0;
  for (int key = 0; key < keys; key += kKeys) {
    WaitForCopies();
    __syncthreads();  // this stage is there, nobody reads the other any more
    const Stage<Products> stage(memory, which);
    which = 1 - which;
    if (key + kKeys < keys) {
      Stage<Products>(memory, which).Fill(a, query, key + kKeys);
    }
    typename Products::Scores scores, gradients;
    Products::Multiply(q, stage.k, scores);
    HideFuture<Products>(a, query, key, scores);
    Products::Multiply(d_o, stage.v, gradients);
    GradientsOfScores<Products>(a, rows, stage.mask, scores, gradients);
    Products::AddProduct(gradients, stage.k, exchange, sums);
  }
  WaitForCopies();
  __syncthreads();  // q is there, even if there were no keys; nobody reads it
  StoreResult<Products>(a.result, sample, head, a.head_dim, query, a.scale,
                        sums, q);
}

}  // namespace

template <typename T>
void LaunchGradientOfQueries(CudaDevice& device, const RawAttention<T>& a) {
  WithAttentionProducts<T>(a.head_dim, [&]<typename All>() {
    using Products = typename All::OfQueries;
    Launch(
        device, GradientOfQueriesKernel<Products>,
        {.grid = dim3(Blocks(a.q_length(), Products::kRows), a.heads, a.batch),
         .block = Products::kThreads,
         .shared_bytes = kSharedBytes<Products>},
        a);
  });
}

template <typename T>
size_t SharedBytesOfGradientOfQueries(int head_dim) {
  size_t bytes = 0;
  WithAttentionProducts<T>(head_dim, [&]<typename All>() {
    bytes = kSharedBytes<typename All::OfQueries>;
  });
  return bytes;
}

template size_t SharedBytesOfGradientOfQueries<float>(int head_dim);
template size_t SharedBytesOfGradientOfQueries<uint16_t>(int head_dim);
template size_t SharedBytesOfGradientOfQueries<Fp16>(int head_dim);

template void LaunchGradientOfQueries(CudaDevice&, const RawAttention<float>&);
template void LaunchGradientOfQueries(CudaDevice&,
                                      const RawAttention<uint16_t>&);
template void LaunchGradientOfQueries(CudaDevice&,
                                      const RawAttention<Fp16>&);

}  // namespace troupe::cuda
