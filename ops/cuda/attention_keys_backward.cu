// The gradients of k and v. A block of threads owns a tile of keys of one kv
// head, and goes through all queries that see one of them, head by head: the
// sums over the heads that share the keys have one owner and one order.
//
//   P = exp(scale Q K^T - logsumexp),  dS = P o (D o dO V^T - delta),
//   dV = (P o D)^T dO,  dK = scale dS^T Q,  with D the factors of dropout
//
// Keys are the rows here, so that P^T and dS^T are computed as such and meet dO
// and Q without leaving the registers.
#include "ops/cuda/attention_kernels.h"
#include "ops/cuda/attention_products.h"
#include "ops/cuda/attention_result.h"

namespace troupe::cuda {
namespace {

// A tile of queries of one head.
struct Place {
  int head;
  int query;
};

// The tiles that come and go; while one stage is worked on, the other fills.
template <typename Products>
struct Stage {
  static constexpr int kQueries = Products::kColumns;
  static constexpr int kScalarBytes = kQueries * sizeof(float);
  using Mask = DropoutTile<kQueries, Products::kRows>;
  static constexpr int kBytes =
      2 * Products::ColumnTile::kBytes + 2 * kScalarBytes + Mask::kBytes;

  typename Products::ColumnTile q, d_o;
  float* logsumexp;
  float* delta;
  Mask mask;

  __device__ Stage(SharedMemory memory, int which) {
    memory.template Take<char>(which * kBytes);
    q = memory.Take<typename Products::ColumnTile>();
    d_o = memory.Take<typename Products::ColumnTile>();
    logsumexp = memory.Take<float>(kScalarBytes);
    delta = memory.Take<float>(kScalarBytes);
    mask.words = memory.Take<uint32_t>(Mask::kBytes);
  }

  // Begins to fetch the queries there for the keys from `key` on.
  template <typename T>
  __device__ void Fill(const RawAttention<T>& a, Place at, int key) const {
    constexpr int kThreads = Products::kThreads;
    const int sample = blockIdx.z;
    q.template Fill<kThreads>(a.q.From(sample, at.head, a.head_dim, at.query));
    d_o.template Fill<kThreads>(
        a.d_o.From(sample, at.head, a.head_dim, at.query));
    const int i = threadIdx.x;
    if (i < kQueries) {
      const bool present = at.query + i < a.q_length();
      const int64_t row =
          a.RowOf(sample, at.head, at.query) + (present ? i : 0);
      CopyAsync<4>(logsumexp + i, a.logsumexp + row, present);
      CopyAsync<4>(delta + i, a.delta + row, present);
    }
    if (a.dropout.threshold != 0) {
      mask.template Draw<kThreads>(a, sample, at.head, at.query, key);
    }
  }
};

template <typename Products>
constexpr int kSharedBytes =
    2 * Products::RowTile::kBytes + Products::kExchangeBytes +
    2 * Stage<Products>::kBytes;

// scores: K Q^T, become the weights (P o D)^T without the factor of what is
// kept. gradients: V dO^T, become dS^T.
template <typename Products, typename T>
__device__ void Weigh(const RawAttention<T>& a, const Stage<Products>& stage,
                      typename Products::Scores& scores,
                      typename Products::Scores& gradients) {
  const bool dropout = a.dropout.threshold != 0;
#pragma unroll
  for (int j = 0; j < Products::kThreadColumns; ++j) {
    const int query = Products::Column(j);
    const float logsumexp = stage.logsumexp[query] * kLog2E;
    const float delta = stage.delta[query];
#pragma unroll
    for (int i = 0; i < Products::kThreadRows; ++i) {
      const float p = Exp2(fmaf(scores[i][j], a.scale * kLog2E, -logsumexp));
      const bool kept = !dropout || stage.mask.Keeps(query, Products::Row(i));
      const float dp = kept ? gradients[i][j] * a.dropout.keep_scale : 0;
      gradients[i][j] = p * (dp - delta);
      scores[i][j] = kept ? p : 0;
    }
  }
}

// Scores of queries that are not there, or do not see a key, become -inf.
template <typename Products, typename T>
__device__ void HidePast(const RawAttention<T>& a, int key, int query,
                         typename Products::Scores& scores) {
  const int count = a.q_length() - query;
  if (a.FirstQuery(key + Products::kRows - 1) <= query &&
      count >= Products::kColumns) {
    return;
  }
#pragma unroll
  for (int i = 0; i < Products::kThreadRows; ++i) {
    const int first = a.FirstQuery(key + Products::Row(i)) - query;
#pragma unroll
    for (int j = 0; j < Products::kThreadColumns; ++j) {
      const int at = Products::Column(j);
      if (at < first || at >= count) scores[i][j] = -INFINITY;
    }
  }
}

template <typename Products>
__global__ void __launch_bounds__(Products::kThreads, 1)
    GradientsOfKeysKernel(RawAttention<typename Products::Element> a) {
  constexpr int kThreads = Products::kThreads, kQueries = Products::kColumns;
  const int kv_head = blockIdx.y, sample = blockIdx.z;
  const int key = blockIdx.x * Products::kRows;
  const int heads = a.heads / a.kv_heads;  // that share the keys
  const int first_query = a.FirstQuery(key);
  const int first = first_query / kQueries * kQueries;  // of its tile
  const auto after = [&](Place at) -> Place {
    const bool same_head = at.query + kQueries < a.q_length();
    return same_head ? Place{at.head, at.query + kQueries}
                     : Place{at.head + 1, first};
  };
  SharedMemory memory;
  const auto k = memory.Take<typename Products::RowTile>();
  const auto v = memory.Take<typename Products::RowTile>();
  float* exchange = memory.Take<float>(Products::kExchangeBytes);
  k.template Fill<kThreads>(a.k.From(sample, kv_head, a.head_dim, key));
  v.template Fill<kThreads>(a.v.From(sample, kv_head, a.head_dim, key));
  Place at = {kv_head * heads, first};
  const int end = first_query < a.q_length() ? at.head + heads : at.head;
  if (at.head < end) Stage<Products>(memory, 0).Fill(a, at, key);
  typename Products::Sums dk = {}, dv = {};
  int which = 0;
  while (at.head < end) {
    WaitForCopies();
    __syncthreads();  // this stage is there, nobody reads the other any more
    const Stage<Products> stage(memory, which);
    which = 1 - which;
    const Place next = after(at);
    if (next.head < end) Stage<Products>(memory, which).Fill(a, next, key);
    typename Products::Scores scores, gradients;
    Products::Multiply(k, stage.q, scores);
    HidePast<Products>(a, key, at.query, scores);
    Products::Multiply(v, stage.d_o, gradients);
    Weigh<Products>(a, stage, scores, gradients);
    Products::AddProduct(scores, stage.d_o, exchange, dv);
    Products::AddProduct(gradients, stage.q, exchange, dk);
    at = next;
  }
  WaitForCopies();
  __syncthreads();  // nobody reads k and v any more
  StoreResult<Products>(a.dk, sample, kv_head, a.head_dim, key, a.scale, dk, k);
  StoreResult<Products>(a.dv, sample, kv_head, a.head_dim, key,
                        a.dropout.keep_scale, dv, v);
}

}  // namespace

template <typename T>
void LaunchGradientsOfKeys(CudaDevice& device, const RawAttention<T>& a) {
  WithAttentionProducts<T>(a.head_dim, [&]<typename All>() {
    using Products = typename All::OfKeys;
    Launch(device, GradientsOfKeysKernel<Products>,
           {.grid = dim3(Blocks(a.kv_length(), Products::kRows), a.kv_heads,
                         a.batch),
            .block = Products::kThreads,
            .shared_bytes = kSharedBytes<Products>},
           a);
  });
}

template <typename T>
size_t SharedBytesOfGradientsOfKeys(int head_dim) {
  size_t bytes = 0;
  WithAttentionProducts<T>(head_dim, [&]<typename All>() {
    bytes = kSharedBytes<typename All::OfKeys>;
  });
  return bytes;
}

template size_t SharedBytesOfGradientsOfKeys<float>(int head_dim);
template size_t SharedBytesOfGradientsOfKeys<uint16_t>(int head_dim);
template size_t SharedBytesOfGradientsOfKeys<Fp16>(int head_dim);

template void LaunchGradientsOfKeys(CudaDevice&, const RawAttention<float>&);
template void LaunchGradientsOfKeys(CudaDevice&, const RawAttention<uint16_t>&);
template void LaunchGradientsOfKeys(CudaDevice&, const RawAttention<Fp16>&);

}  // namespace troupe::cuda
