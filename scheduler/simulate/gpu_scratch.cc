#include "scheduler/simulate/gpu_scratch.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "proto/base/gpu_limits.h"
#include "proto/plan/memory.h"
#include "proto/plan/ops/op_view.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

constexpr int64_t kF32Bytes = 4;
// The pool's steps are the driver's affair; these are not smaller.
constexpr int64_t kPoolStepBytes = int64_t{32} << 20;

int64_t RoundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

bool Multiplies(const Plan& plan) {
  return std::any_of(
      plan.units().begin(), plan.units().end(),
      [](const Unit& unit) { return unit.forward().matmul_flops() > 0; });
}

// Of attention's backward: a number for each row and head by our own kernels.
// cuDNN's, which are asked in bf16 and fp16 where nothing is dropped out, take
// more, in several calls where one would be past a bound, if any is not. A
// worker without cuDNN is counted as one with it: plans are the same for all.
int64_t BytesOfAttention(const OpView& op, const TrainingSpec& training) {
  const TensorSpec& y = op.output("y");
  const AttentionShape shape = *AttentionShapeOf(op);
  const int64_t own = RowsOf(y) * shape.heads * kF32Bytes;
  if (y.dtype() == F32 || training.dropout() > 0 ||
      op.op().kind() != Op::ATTENTION || shape.length == 0) {
    return own;
  }
  const GpuAttentionShape call =
      GpuAttentionCall({.samples = RowsOf(y) / shape.length,
                        .heads = shape.heads,
                        .kv_heads = shape.kv_heads,
                        .q_length = shape.length,
                        .kv_length = shape.length,
                        .head_dim = shape.head_dim});
  return call.samples == 0 ? own : std::max(own, GpuAttentionWorkBytes(call));
}

// Where the columns of y are no whole vectors, the gradient of x is a sum of
// two parts, in f32.
int64_t BytesOfSumsInParts(const OpView& op) {
  const TensorSpec& x = op.input("x");
  const bool in_parts =
      x.dtype() != F32 && ColumnsOf(op.output("y")) % kGpuVectorElements != 0;
  return in_parts ? ElementsOf(x) * kF32Bytes : 0;
}

// What a kernel takes; a biased product only where its sums are not those of
// the type that is multiplied.
int64_t BytesOfKernel(const OpView& op, const TrainingSpec& training) {
  constexpr int64_t kBytesOfToken =
      20;  // sorted, with its row, twice; the sort
  const auto sums_of_rows = [](int64_t columns) {
    return kGpuSumPartsMax * columns * kF32Bytes;
  };
  switch (op.op().kind()) {
    case Op::ATTENTION:
    case Op::ATTENTION_PART:
      return BytesOfAttention(op, training);
    case Op::NORM:
      return sums_of_rows(2 * ColumnsOf(op.output("y")));  // scale and shift
    case Op::HEAD_NORM:  // of queries, then of keys
      return sums_of_rows(op.output("y").dims(2).sections(0).width());
    case Op::EMBED: {
      const int64_t tokens = ElementsOf(op.input("tokens"));
      const int64_t pieces =
          RoundUp(tokens, kGpuEmbeddingPieceRows) / kGpuEmbeddingPieceRows;
      // Two sums for each piece, one of which its run may begin in.
      return tokens * kBytesOfToken +
             2 * pieces * ColumnsOf(op.output("y")) * kF32Bytes;
    }
    case Op::DISPATCH:  // choices are sorted as tokens are
      return ElementsOf(op.input("choices")) * kBytesOfToken;
    case Op::WEIGHT:  // its gradient, as one row
      return ElementsOf(op.output("y")) * kF32Bytes;
    case Op::LINEAR:
    case Op::PRODUCT: {
      const TensorSpec& y = op.output("y");
      const int64_t product = y.dtype() == F32 ? 0 : ElementsOf(y) * kF32Bytes;
      const int64_t biased = op.op().linear().bias()
                                 ? std::max(product, sums_of_rows(ColumnsOf(y)))
                                 : 0;
      return std::max(biased, BytesOfSumsInParts(op));
    }
    default:
      return 0;
  }
}

int64_t KernelScratchBytes(const Plan& plan) {
  int64_t most = 0;
  for (const UnitTable& table : plan.tables()) {
    for (const Op& op : table.ops()) {
      most = std::max(most, BytesOfKernel({table, op}, plan.job().training()));
    }
  }
  return RoundUp(most, kPoolStepBytes);
}

MemoryItem Item(const std::string& name, int64_t bytes) {
  MemoryItem item;
  item.set_tier(DEVICE);
  item.set_item(name);
  item.set_bytes(bytes);
  return item;
}

}  // namespace

std::vector<MemoryItem> GpuScratchItems(const Plan& plan) {
  if (!Multiplies(plan)) return {};
  return {Item("product_workspace", kGpuProductWorkspaceBytes),
          Item(kKernelScratchItem, KernelScratchBytes(plan))};
}

}  // namespace troupe
