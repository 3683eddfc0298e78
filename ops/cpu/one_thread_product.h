// A product on the calling thread alone, one of many that a kernel computes
// side by side: a block of a grouped product.
#ifndef TROUPE_OPS_CPU_ONE_THREAD_PRODUCT_H_
#define TROUPE_OPS_CPU_ONE_THREAD_PRODUCT_H_

#include "ops/cpu/cpu_device.h"
#include "ops/matmul.h"

namespace troupe::cpu {

// c (+)= op(a) op(b); what else the arguments ask of c is left out. Matrices
// are of rank 2, rows may be strided.
//
// In f32 and by our own code (packed_product.h) any size costs the same. By
// oneDNN's primitives for bf16 the first product of a shape costs 0.3 ms more,
// and so does one of a shape that was not among the last 512: callers keep to
// few shapes.
void OneThreadProduct(CpuDevice& cpu, const MatMulArgs& args);

// Whether products of this type are oneDNN's primitives for bf16; and the one
// that these arguments ask for, but for what they ask of c after the bias.
inline bool ByPrimitives(const CpuDevice& cpu, DType dtype) {
  return dtype == DType::kBF16 && cpu.has_bf16_products();
}
Bf16ProductShape Bf16ProductShapeOf(const MatMulArgs& args);

}  // namespace troupe::cpu

#endif  // TROUPE_OPS_CPU_ONE_THREAD_PRODUCT_H_
