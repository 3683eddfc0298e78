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

// Rows that the gradient of a token table adds up at once, one by one; what
// goes on from there has partial sums of its own in f32.
inline constexpr int kGpuEmbeddingPieceRows = 64;

// What cuDNN's backward of attention may take in one call. It keeps the
// gradients of all scores, as it gives the same bits each time only so, and a
// backward that would need more is cut into several calls: at least one for the
// heads that share their keys. Eight such of 8,192 positions fit.
inline constexpr int64_t kGpuAttentionWorkBytesMax = int64_t{1152} << 20;

struct GpuAttentionWork {
  int64_t heads = 0;  // of queries, of all samples
  int64_t q_length = 0;
  int64_t kv_length = 0;
  int64_t head_dim = 0;
  bool shared_keys = false;  // several heads have the same keys
};

// What such a call takes at most: a score's gradient in two bytes, over whole
// tiles; a number for each row; where heads share their keys, the gradients of
// k and v by head of the queries.
constexpr int64_t GpuAttentionWorkBytes(const GpuAttentionWork& work) {
  constexpr int64_t kTile = 128, kNarrow = 2, kF32 = 4, kOther = 4096;
  const int64_t rows = (work.q_length + kTile - 1) / kTile * kTile;
  const int64_t columns = (work.kv_length + kTile - 1) / kTile * kTile;
  const int64_t by_head =
      work.shared_keys ? 2 * work.kv_length * work.head_dim * kNarrow : 0;
  return work.heads *
             (rows * columns * kNarrow + work.q_length * kF32 + by_head) +
         kOther;
}

// Parts into which the rows of a sum over rows are cut at most, each with
// partial sums of its own in f32.
inline constexpr int kGpuSumPartsMax = 128;

}  // namespace troupe

#endif  // TROUPE_PROTO_BASE_GPU_LIMITS_H_
