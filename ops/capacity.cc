#include "ops/capacity.h"

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/kernel_table.h"

namespace troupe {

void Capacity(Device& device, const CapacityArgs& args) {
  CHECK_DTYPE(args.choices, DType::kI32);
  CHECK(args.choices.dense()) << args.choices.ShapeString() << " with gaps";
  CHECK_F32_ELEMENTS(args.gates, args.choices.elements());
  CHECK_F32_ELEMENTS(args.kept, args.choices.elements());
  CHECK(args.tokens >= 1 && args.choices.rows() % args.tokens == 0)
      << args.choices.ShapeString() << " of sequences of " << args.tokens;
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
