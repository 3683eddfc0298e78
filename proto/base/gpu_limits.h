// How far the kernels for GPUs go (ops/cuda): the planner refuses what they do
// not take, and they say where they stand.
#ifndef TROUPE_PROTO_BASE_GPU_LIMITS_H_
#define TROUPE_PROTO_BASE_GPU_LIMITS_H_

namespace troupe {

// Columns of a head, of attention.
inline constexpr int kGpuHeadDimMax = 256;

}  // namespace troupe

#endif  // TROUPE_PROTO_BASE_GPU_LIMITS_H_
