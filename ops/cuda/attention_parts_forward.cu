// The loop of attention_forward.cu over a part of the keys: what it ends with
// is left as it is, for attention_join_parts.cu.
#include <algorithm>

#include "ops/cuda/attention_kernels.h"
#include "ops/cuda/attention_parts.h"
#include "ops/cuda/attention_products.h"
#include "ops/cuda/attention_softmax.h"
#include "ops/cuda/launch.h"
#include "ops/cuda/scratch.h"

namespace troupe::cuda {
namespace {

// Two for each multiprocessor of an H100; the same number everywhere, since how
// keys are cut decides how sums are rounded.
constexpr int64_t kBlocksWanted = 256;
constexpr int64_t kPartKeysMin = 256;

template <typename Products>
struct Layout {
  static constexpr int kBytes = Products::RowTile::kBytes +
                                2 * Products::ColumnTile::kBytes +
                                Products::kExchangeBytes;

  typename Products::RowTile q;
  typename Products::ColumnTile k, v;
  float* exchange;

  __device__ Layout() {
    SharedMemory memory;
    q = memory.Take<typename Products::RowTile>();
    k = memory.Take<typename Products::ColumnTile>();
    v = memory.Take<typename Products::ColumnTile>();
    exchange = memory.Take<float>(Products::kExchangeBytes);
  }
};

// Scores of keys that a row does not see become -inf, those past the last key
// among them.
template <typename Products, typename T>
__device__ void HideUnseen(const RawAttention<T>& a, int key,
                           typename Products::Scores& scores) {
  if (a.Seen(0) - key >= Products::kColumns) return;
  const bool rows_are_queries = a.q_length() > 1;
#pragma unroll
  for (int i = 0; i < Products::kThreadRows; ++i) {
    const int seen = a.Seen(rows_are_queries ? Products::Row(i) : 0) - key;
#pragma unroll
    for (int j = 0; j < Products::kThreadColumns; ++j) {
      if (Products::Column(j) >= seen) scores[i][j] = -INFINITY;
    }
  }
}

// `first`: the number of the block's first row among [sample, head, query].
template <typename Products, typename T>
__device__ void StorePart(const RawParts<T>& p, int64_t first, int part,
                          const OnlineSoftmax<Products>& softmax,
                          const typename Products::Sums& sums) {
  const int head_dim = p.attention.head_dim;
#pragma unroll
  for (int i = 0; i < Products::kThreadRows; ++i) {
    const float sum = SumOfRow<Products>(softmax.sum[i]);
    if (Products::Row(i) >= p.rows()) continue;
    const int64_t at = (first + Products::Row(i)) * p.parts + part;
    if (Products::Dim(0) == 0) {
      p.largest[at] = softmax.largest[i];
      p.sum[at] = sum;
    }
#pragma unroll
    for (int j = 0; j < Products::kThreadDims; ++j) {
      const int dim = Products::Dim(j);
      if (dim < head_dim) p.products[at * head_dim + dim] = sums[i][j];
    }
  }
}

template <typename Products>
__global__ void __launch_bounds__(Products::kThreads, 1)
    PartForwardKernel(RawParts<typename Products::Element> p) {
  constexpr int kThreads = Products::kThreads, kKeys = Products::kColumns;
  const auto& a = p.attention;
  const int part = blockIdx.x, sample = blockIdx.z;
  const int head = blockIdx.y * p.block_heads;
  const int kv_head = head / (a.heads / a.kv_heads);
  const int begin = part * p.part_keys;
  const int end =
      part + 1 < p.parts ? begin + p.part_keys : a.Seen(a.q_length() - 1);
  const Layout<Products> shared;
  auto rows = a.q.From(sample, head, a.head_dim, 0);
  if (a.q_length() == 1) {
    rows.stride = a.head_dim;  // heads lie side by side
    rows.count = p.block_heads;
  }
  const auto fill_k = [&](int key) {
    shared.k.template Fill<kThreads>(
        a.k.From(sample, kv_head, a.head_dim, key));
  };
  shared.q.template Fill<kThreads>(rows);
  fill_k(begin);
  OnlineSoftmax<Products> softmax;
  typename Products::Sums sums = {};
  for (int key = begin; key < end; key += kKeys) {
    WaitForCopies();
    __syncthreads();  // k is there, and nobody reads v any more
    shared.v.template Fill<kThreads>(
        a.v.From(sample, kv_head, a.head_dim, key));
    typename Products::Scores scores;
    Products::Multiply(shared.q, shared.k, scores);
    HideUnseen<Products>(a, key, scores);
    softmax.Weigh(a.scale * kLog2E, scores, sums);
    WaitForCopies();
    __syncthreads();  // v is there, nobody reads k any more
    if (key + kKeys < end) fill_k(key + kKeys);
    Products::AddProduct(scores, shared.v, shared.exchange, sums);
  }
  StorePart<Products>(p, a.RowOf(sample, head, 0), part, softmax, sums);
}

// How the keys are cut: parts is 1 where they are not. Parts begin among the
// keys that all queries see, so that each row sees the first key of each part.
template <typename Products, typename T>
RawParts<T> Cut(const RawAttention<T>& a) {
  constexpr int64_t kRows = Products::kRows, kColumns = Products::kColumns;
  RawParts<T> p = {.attention = a, .parts = 1, .block_heads = 1};
  const int sharing = a.heads / a.kv_heads;
  if (a.q_length() == 1 && sharing <= kRows) p.block_heads = sharing;
  const int64_t blocks = int64_t{a.batch} * a.heads / p.block_heads;
  if (blocks == 0 || p.rows() == 0 || p.rows() > kRows) return p;
  if (a.dropout.threshold != 0) return p;
  if (a.result.whole.data != nullptr || a.result.before.data != nullptr) {
    return p;
  }
  const int64_t keys = a.Seen(0);
  const int64_t wanted = std::min(kBlocksWanted / blocks, keys / kPartKeysMin);
  if (wanted < 2) return p;
  const int64_t tiles = (keys + kColumns - 1) / kColumns;
  const int64_t part_tiles = (tiles + wanted - 1) / wanted;
  p.part_keys = static_cast<int>(part_tiles * kColumns);
  p.parts = static_cast<int>((tiles + part_tiles - 1) / part_tiles);
  return p;
}

template <typename Products, typename T>
bool LaunchParts(CudaDevice& device, const RawAttention<T>& a) {
  RawParts<T> p = Cut<Products>(a);
  if (p.parts == 1) return false;
  const int64_t found = int64_t{a.batch} * a.heads * a.q_length() * p.parts;
  const Scratch largest(device, found * sizeof(float));
  const Scratch sum(device, found * sizeof(float));
  const Scratch products(device, found * a.head_dim * sizeof(float));
  p.largest = largest.as<float>();
  p.sum = sum.as<float>();
  p.products = products.as<float>();
  Launch(device, PartForwardKernel<Products>,
         {.grid = dim3(p.parts, a.heads / p.block_heads, a.batch),
          .block = Products::kThreads,
          .shared_bytes = Layout<Products>::kBytes},
         p);
  LaunchJoinParts(device, p);
  return true;
}

}  // namespace

template <typename T>
bool LaunchPartsForward(CudaDevice& device, const RawAttention<T>& a) {
  bool launched = false;
  WithAttentionProducts<T>(a.head_dim, [&]<typename All>() {
    launched = LaunchParts<typename All::OfParts>(device, a);
  });
  return launched;
}

template <typename T>
size_t SharedBytesOfPartsForward(int head_dim) {
  size_t bytes = 0;
  WithAttentionProducts<T>(head_dim, [&]<typename All>() {
    bytes = Layout<typename All::OfParts>::kBytes;
  });
  return bytes;
}

template size_t SharedBytesOfPartsForward<float>(int head_dim);
template size_t SharedBytesOfPartsForward<uint16_t>(int head_dim);
template size_t SharedBytesOfPartsForward<Fp16>(int head_dim);

template bool LaunchPartsForward(CudaDevice&, const RawAttention<float>&);
template bool LaunchPartsForward(CudaDevice&, const RawAttention<uint16_t>&);
template bool LaunchPartsForward(CudaDevice&, const RawAttention<Fp16>&);

}  // namespace troupe::cuda
