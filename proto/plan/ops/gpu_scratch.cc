#include "proto/plan/ops/gpu_scratch.h"

#include <algorithm>

#include "proto/base/gpu_limits.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

constexpr int64_t kF32Bytes = 4;

bool IsTooLarge(int64_t rows, int64_t columns) {
  return rows > 0 && columns > kGpuProductElementsMax / rows;
}

}  // namespace

int64_t GpuSumOfRowsBytes(int64_t columns) {
  return kGpuSumPartsMax * columns * kF32Bytes;
}

int64_t GpuProductScratchBytes(const OpView& op) {
  const TensorSpec& x = op.input("x");
  const TensorSpec& y = op.output("y");
  const bool narrow = x.dtype() != F32;
  const bool parts_of_w = IsTooLarge(ColumnsOf(x), ColumnsOf(y));
  // Rows of a weight [in, out] are summed over in the forward pass, those of
  // one [out, in] in the backward pass.
  const bool in_out = op.op().linear().in_out();
  const int64_t product = y.dtype() == F32 ? 0 : ElementsOf(y) * kF32Bytes;
  int64_t bytes = 0;
  if (op.op().linear().bias()) {
    bytes = std::max(product, GpuSumOfRowsBytes(ColumnsOf(y)));
  }
  if (parts_of_w && in_out) bytes = std::max(bytes, product);
  if (narrow &&
      (ColumnsOf(y) % kGpuVectorElements != 0 || (parts_of_w && !in_out))) {
    bytes = std::max(bytes, ElementsOf(x) * kF32Bytes);
  }
  return bytes;
}

int64_t GpuNarrowGradientBytes(const GpuWeightGradient& gradient) {
  return IsTooLarge(gradient.rows, gradient.row_stride)
             ? gradient.in * gradient.out * kF32Bytes
             : 0;
}

int64_t GpuAttentionScratchBytes(const OpView& op) {
  return RowsOf(op.output("y")) * AttentionShapeOf(op)->heads * kF32Bytes;
}

}  // namespace troupe
