#include "ops/capacity.h"

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/kernel_table.h"

namespace troupe {
namespace {

void CheckCounts(const CapacityArgs& args) {
  CHECK_DENSE_F32(args.counts);
  const Tensor& counts = args.counts;
  const int64_t n = args.choices.rows();
  const int64_t sequences = n == 0 ? 0 : args.rows.Of(n - 1) + 1;
  CHECK(counts.rank() == 3 && counts.columns() == args.experts &&
        counts.dim(1) >= sequences * args.choices.columns() && args.rank >= 0 &&
        args.rank < counts.dim(0))
      << "counts " << counts.ShapeString() << " for rank " << args.rank << ", "
      << sequences << " sequences and choices " << args.choices.ShapeString();
}

}  // namespace

void Capacity(Device& device, const CapacityArgs& args) {
  CHECK_DTYPE(args.choices, DType::kI32);
  CHECK(args.choices.dense()) << args.choices.ShapeString() << " with gaps";
  CHECK_F32_ELEMENTS(args.gates, args.choices.elements());
  CHECK_F32_ELEMENTS(args.kept, args.choices.elements());
  CHECK_GE(args.rows.tokens, 1);
  if (args.counts.defined()) {
    CheckCounts(args);
  } else {
    CHECK(args.rows.first == 0 && args.choices.rows() % args.rows.tokens == 0)
        << args.choices.ShapeString() << " of sequences of "
        << args.rows.tokens;
  }
  CHECK(args.experts >= 1 && args.places >= 1)
      << args.places << " places of " << args.experts << " experts";
  if (args.dropped.defined()) CHECK_ELEMENTS(args.dropped, DType::kF64, 1);
  device.kernels().capacity(device, args);
}

void CapacityBackward(Device& device, const CapacityBackwardArgs& args) {
  CHECK_DENSE_F32(args.kept);
  CHECK_F32_ELEMENTS(args.d_kept, args.kept.elements());
  CHECK_F32_ELEMENTS(args.d_gates, args.kept.elements());
  device.kernels().capacity_backward(device, args);
}

}  // namespace troupe
