#include "ops/cpu/f32_product.h"

#include <oneapi/dnnl/dnnl.h>

namespace troupe::cpu {

void SgemmColumns(const MatMulArgs& args, int64_t first, int64_t count) {
  const int64_t depth = args.transpose_a ? args.a.rows() : args.a.columns();
  const float* const b =
      args.b.data<float>() +
      (args.transpose_b ? first * args.b.RowStride() : first);
  const dnnl_status_t status = dnnl_sgemm(
      args.transpose_a ? 'T' : 'N', args.transpose_b ? 'T' : 'N', args.c.rows(),
      count, depth, 1.0f, args.a.data<float>(), args.a.RowStride(), b,
      args.b.RowStride(), args.accumulate ? 1.0f : 0.0f,
      args.c.data<float>() + first, args.c.RowStride());
  CHECK_EQ(status, dnnl_success)
      << args.a.ShapeString() << " by " << args.b.ShapeString();
}

}  // namespace troupe::cpu
