// How wide the heads may be that attention takes on a GPU: its kernels keep
// tiles in shared memory, whose sizes are constants of each, and GPUs differ in
// how much of it a block may have (163 KiB on an A100, 227 on an H100, 99 on
// many that are for desktops).
#ifndef TROUPE_OPS_CUDA_ATTENTION_LIMITS_H_
#define TROUPE_OPS_CUDA_ATTENTION_LIMITS_H_

#include <cstddef>

#include "ops/tensor.h"

namespace troupe::cuda {

// The most that a block of any of attention's kernels asks for. REQUIRES heads
// of up to kGpuHeadDimMax dims.
size_t AttentionSharedBytes(DType type, int head_dim);

// The widest heads such that the kernels of these and of all narrower ones run
// where a block may have `shared_bytes`; 0: there are none.
int AttentionHeadDimMax(DType type, size_t shared_bytes);

}  // namespace troupe::cuda

#endif  // TROUPE_OPS_CUDA_ATTENTION_LIMITS_H_
