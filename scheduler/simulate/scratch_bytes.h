// Memory that the kernels of a CPU worker take beside the plan's slots, for as
// long as they run. They keep what they took (ops/cpu/scratch.h, and the heap
// under oneDNN), so this is the most that they take in any instruction:
//
//   attention      for each thread, the block that the backward of one head
//                  packs (ops/cpu/simd/attention_backward.cc), with the sums of
//                  its keys' and values' gradients; forward needs less
//   f32 products   what oneDNN's sgemm packs: of the operand that both share,
//                  up to 9,984 columns for each of up to 10 threads, by 384
//                  rows; of the other, 384 by 384 for each thread. Before
//                  AVX-512 threads share nothing, and it is given 2,048 columns
//                  at once (ops/cpu/matmul.cc), so that they take no more
//   bf16 products  what oneDNN's brgemm packs, at most 1.5 MiB for each thread;
//                  where the processor has no instructions for bf16, and in
//                  fp16 always, what is
//                  packed in f32 of the blocks that ops/cpu/packed_product.cc
//                  cuts, and their sums, for all threads together
//   heap           of f32: the first seven times that sgemm packs, glibc takes
//                  new memory, since a remainder of each aligned block stays
//                  behind it in the thread's cache, which has room for seven
#ifndef TROUPE_SCHEDULER_SIMULATE_SCRATCH_BYTES_H_
#define TROUPE_SCHEDULER_SIMULATE_SCRATCH_BYTES_H_

#include <cstdint>

#include "proto/plan.pb.h"

namespace troupe {

struct ScratchBytes {
  int64_t attention = 0;
  int64_t products = 0;
  int64_t heap = 0;
  int64_t total() const { return attention + products + heap; }
};

// Of one rank, on `threads` threads of a CPU.
struct ScratchOptions {
  int threads = 1;
  bool bf16_instructions = false;  // proto/plan/bf16_gain.h
};
ScratchBytes ScratchBytesOf(const Plan& plan, const ScratchOptions& options);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SIMULATE_SCRATCH_BYTES_H_
