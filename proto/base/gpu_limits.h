// How far the kernels for GPUs go (ops/cuda), and what they take beside their
// operands: the planner refuses what they do not take and counts the rest, and
// they say where they stand.
#ifndef TROUPE_PROTO_BASE_GPU_LIMITS_H_
#define TROUPE_PROTO_BASE_GPU_LIMITS_H_

#include <cstdint>

namespace troupe {

// Columns of a head, of attention.
inline constexpr int kGpuHeadDimMax = 256;

// What matrix products have to work in, for each thread that multiplies.
inline constexpr int64_t kGpuProductWorkspaceBytes = int64_t{32} << 20;

// Elements of bf16 or fp16 in a vector of 16 bytes: what products want dims to
// be multiples of.
inline constexpr int kGpuVectorElements = 8;

// Elements of a matrix, gaps included, that one product takes: some of
// cuBLASLt's kernels count in 32 bits. A product of larger ones is cut in
// parts.
inline constexpr int64_t kGpuProductElementsMax = (int64_t{1} << 31) - 1;

// Rows that the gradient of a token table adds up at once, one by one; what
// goes on from there has partial sums of its own in f32.
inline constexpr int kGpuEmbeddingPieceRows = 64;

// Whether cuDNN's attention takes such heads, on all generations, in both
// directions; of one query there is too little to do.
constexpr bool CudnnTakesHeads(int64_t q_length, int64_t head_dim) {
  return q_length > 1 && head_dim % 8 == 0 && head_dim <= 128;
}

// What cuDNN's backward of attention may take in one call. It keeps the
// gradients of all scores, as it gives the same bits each time only so, and a
// backward that would need more is cut into several calls: at least one for the
// heads that share their keys. Eight such of 8,192 positions fit.
inline constexpr int64_t kGpuAttentionWorkBytesMax = int64_t{1152} << 20;

struct GpuAttentionShape {
  int64_t samples = 0;
  int64_t heads = 0;  // of queries
  int64_t kv_heads = 0;
  int64_t q_length = 0;
  int64_t kv_length = 0;
  int64_t head_dim = 0;

  bool operator==(const GpuAttentionShape&) const = default;
};

// What a call of that shape takes at most: a score's gradient in two bytes,
// over whole tiles; two numbers for each row; where heads share their keys, the
// gradients of k and v by head of the queries.
constexpr int64_t GpuAttentionWorkBytes(const GpuAttentionShape& shape) {
  constexpr int64_t kTile = 128, kNarrow = 2, kF32 = 4, kOther = 4096;
  const int64_t rows = (shape.q_length + kTile - 1) / kTile * kTile;
  const int64_t columns = (shape.kv_length + kTile - 1) / kTile * kTile;
  const int64_t by_head = shape.kv_heads < shape.heads
                              ? 2 * shape.kv_length * shape.head_dim * kNarrow
                              : 0;
  return shape.samples * shape.heads *
             (rows * columns * kNarrow + 2 * shape.q_length * kF32 + by_head) +
         kOther;
}

// One of the equal calls into which a backward is cut, so that none takes more
// than the bound: along the samples, and where one is too much along its heads
// of keys, each with all that read it. No samples: it is too much even so, or
// nothing that cuDNN's kernels take.
constexpr GpuAttentionShape GpuAttentionCall(const GpuAttentionShape& whole) {
  if (whole.samples == 0 || !CudnnTakesHeads(whole.q_length, whole.head_dim)) {
    return {};
  }
  GpuAttentionShape call = whole;
  const auto too_much = [&] {
    return GpuAttentionWorkBytes(call) > kGpuAttentionWorkBytesMax;
  };
  while (call.samples > 0 &&
         (whole.samples % call.samples != 0 || too_much())) {
    --call.samples;
  }
  if (call.samples > 0) return call;
  call.samples = 1;
  while (call.kv_heads > 0 &&
         (whole.kv_heads % call.kv_heads != 0 || too_much())) {
    --call.kv_heads;
    call.heads = call.kv_heads * (whole.heads / whole.kv_heads);
  }
  return call.kv_heads > 0 ? call : GpuAttentionShape();
}

// Parts into which the rows of a sum over rows are cut at most, each with
// partial sums of its own in f32.
inline constexpr int kGpuSumPartsMax = 128;

}  // namespace troupe

#endif  // TROUPE_PROTO_BASE_GPU_LIMITS_H_
