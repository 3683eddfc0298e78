#include "ops/cpu/one_thread_product.h"

#include "ops/cpu/bf16_product.h"
#include "ops/cpu/f32_product.h"
#include "ops/cpu/packed_product.h"

namespace troupe::cpu {

Bf16ProductShape Bf16ProductShapeOf(const MatMulArgs& args) {
  return {.m = args.c.rows(),
          .n = args.c.columns(),
          .k = args.transpose_a ? args.a.rows() : args.a.columns(),
          .a_stride = args.a.RowStride(),
          .b_stride = args.b.RowStride(),
          .c_stride = args.c.RowStride(),
          .transpose_a = args.transpose_a,
          .transpose_b = args.transpose_b,
          .accumulate = args.accumulate,
          .bias = args.bias.defined(),
          .c_is_f32 = args.c.dtype() == DType::kF32};
}

void OneThreadProduct(CpuDevice& cpu, const MatMulArgs& args) {
  const DType dtype = args.a.dtype();
  if (dtype != DType::kF32 && !ByPrimitives(cpu, dtype)) {
    return PackedProduct(cpu, args, /*threads=*/1);
  }
  const OpenMpThreads one(1);
  if (dtype == DType::kF32) return SgemmColumns(args, 0, args.c.columns());
  cpu.one_thread_bf16_products().Multiply(Bf16ProductShapeOf(args),
                                          {.a = args.a.data<uint16_t>(),
                                           .b = args.b.data<uint16_t>(),
                                           .bias = nullptr,
                                           .c = args.c.raw()},
                                          cpu.scratch());
}

}  // namespace troupe::cpu
