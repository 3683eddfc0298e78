// Memory of a GPU that a rank's kernels take there beside the plan's slots
// (ops/cuda/scratch.h, ops/cuda/thread_stream.h): line items of the device
// tier, for which the budget of a worker on a GPU must have room, too.
//
//   product_workspace  what cuBLASLt works in, for the one lane that multiplies
//   kernel_scratch     the most that any op of that lane takes, as they take it
//                      in turn: attention's backward a number for each row and
//                      head, or where cuDNN does it (bf16, fp16, no dropout)
//                      the scores' gradients, 256 MiB at most; sums over rows
//                      partial sums for each column; the embedding's backward
//                      rows sorted by token, and partial sums of tokens that
//                      are frequent; a biased product in bf16 or fp16 that
//                      cuBLASLt does not fuse sums in f32; so does what is
//                      kept in these and summed over more elements than one
//                      product takes: the gradient of a large vocabulary's
//                      weights, where gradients are of the parameters' type.
//                      Rounded up to what CUDA's pool takes from the GPU at
//                      once
#ifndef TROUPE_SCHEDULER_SIMULATE_GPU_SCRATCH_H_
#define TROUPE_SCHEDULER_SIMULATE_GPU_SCRATCH_H_

#include <vector>

#include "proto/plan.pb.h"

namespace troupe {

// Of each rank. None where no unit multiplies.
std::vector<MemoryItem> GpuScratchItems(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SIMULATE_GPU_SCRATCH_H_
