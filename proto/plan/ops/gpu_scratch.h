// What kernels for GPUs take beside their operands, where several kinds of ops
// use one kernel (OpRules.gpu_scratch_bytes, proto/base/gpu_limits.h).
#ifndef TROUPE_PROTO_PLAN_OPS_GPU_SCRATCH_H_
#define TROUPE_PROTO_PLAN_OPS_GPU_SCRATCH_H_

#include <cstdint>

#include "proto/plan/ops/op_view.h"

namespace troupe {

// A token or a choice: sorted, with its row, twice; and the sort.
inline constexpr int64_t kGpuSortBytes = 20;

// A sum over rows, of this number of columns: partial sums in f32.
int64_t GpuSumOfRowsBytes(int64_t columns);

// Of a LINEAR or PRODUCT, x times weights that make y. With a bias, a product
// is kept in f32 where it is not of that type, and its gradient is a sum of
// rows. Where the columns of y are no whole vectors, the gradient of x is a sum
// of two parts in f32; so is what is summed over the rows of a weight that is
// too large for one product.
int64_t GpuProductScratchBytes(const OpView& op);

// Of the gradient of a weight [in, out] that is kept narrow: x or the gradient
// of y may be too large for one product. Then it is a sum of parts in f32.
struct GpuWeightGradient {
  int64_t in = 0;
  int64_t out = 0;
  int64_t rows = 0;        // of x and y
  int64_t row_stride = 0;  // the larger of both
};
int64_t GpuNarrowGradientBytes(const GpuWeightGradient& gradient);

// Attention's backward: a number for each row and head by our own kernels.
int64_t GpuAttentionScratchBytes(const OpView& op);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_OPS_GPU_SCRATCH_H_
