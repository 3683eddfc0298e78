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

// Parts into which the rows of a sum over rows are cut at most, each with
// partial sums of its own in f32.
inline constexpr int kGpuSumPartsMax = 128;

}  // namespace troupe

#endif  // TROUPE_PROTO_BASE_GPU_LIMITS_H_
