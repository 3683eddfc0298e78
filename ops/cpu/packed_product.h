// Products of bf16 and fp16 matrices by f32 instructions: of fp16 on every
// processor, of bf16 on those that have no instructions for it (and for a
// oneDNN that has no or slow code for it there). Blocks of both operands are
// widened while they are packed, as a product in f32 packs them too; sums are
// f32, and each is rounded once.
#ifndef TROUPE_OPS_CPU_PACKED_PRODUCT_H_
#define TROUPE_OPS_CPU_PACKED_PRODUCT_H_

#include "ops/cpu/cpu_device.h"
#include "ops/matmul.h"

namespace troupe::cpu {

// Each thread computes blocks of c by itself, so that none waits for another
// before the end; an element's sum is taken in the same order however c is cut.
//
// c (+)= op(a) op(b) (+ bias), c of their type or f32; what else the arguments
// ask of c is left to the caller. Takes one block of the device's scratch, 6.3
// MB whatever the sizes and the threads, and touches what it needs of it.
void PackedProduct(CpuDevice& cpu, const MatMulArgs& args, int threads);

}  // namespace troupe::cpu

#endif  // TROUPE_OPS_CPU_PACKED_PRODUCT_H_
