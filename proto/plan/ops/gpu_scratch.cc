#include "proto/plan/ops/gpu_scratch.h"

#include <algorithm>

#include "proto/base/gpu_limits.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

constexpr int64_t kF32Bytes = 4;

}  // namespace

int64_t GpuSumOfRowsBytes(int64_t columns) {
  return kGpuSumPartsMax * columns * kF32Bytes;
}

int64_t GpuProductScratchBytes(const OpView& op) {
  const TensorSpec& x = op.input("x");
  const TensorSpec& y = op.output("y");
  const int64_t product = y.dtype() == F32 ? 0 : ElementsOf(y) * kF32Bytes;
  const int64_t biased =
      op.op().linear().bias()
          ? std::max(product, GpuSumOfRowsBytes(ColumnsOf(y)))
          : 0;
  const bool in_parts =
      x.dtype() != F32 && ColumnsOf(y) % kGpuVectorElements != 0;
  return std::max(biased, in_parts ? ElementsOf(x) * kF32Bytes : 0);
}

int64_t GpuAttentionScratchBytes(const OpView& op) {
  return RowsOf(op.output("y")) * AttentionShapeOf(op)->heads * kF32Bytes;
}

}  // namespace troupe
