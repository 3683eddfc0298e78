#include "ops/swiglu.h"

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/kernel_table.h"

namespace troupe {
namespace {

void CheckOffsets(const Tensor& offsets) {
  if (!offsets.defined()) return;
  CHECK_DTYPE(offsets, DType::kI32);
  CHECK(offsets.dense() && offsets.elements() > 1)
      << "offsets are " << offsets.ShapeString();
}

}  // namespace

void SwiGlu(Device& device, const SwiGluArgs& args) {
  CHECK_DENSE_ACTIVATION(args.y);
  CHECK_STRIDED_LIKE(args.gate, args.y);
  CHECK_STRIDED_LIKE(args.up, args.y);
  if (args.weights.defined()) {
    CHECK_F32_ELEMENTS(args.weights, args.y.rows());
  }
  CheckOffsets(args.offsets);
  device.kernels().swiglu(device, args);
}

void SwiGluBackward(Device& device, const SwiGluBackwardArgs& args) {
  CHECK_DENSE_ACTIVATION(args.dy);
  CHECK_STRIDED_LIKE(args.gate, args.dy);
  CHECK_STRIDED_LIKE(args.up, args.dy);
  CHECK_STRIDED_LIKE(args.d_gate, args.dy);
  CHECK_STRIDED_LIKE(args.d_up, args.dy);
  CHECK(args.d_gate.raw() != args.d_up.raw()) << "d_gate and d_up are one";
  CHECK_EQ(args.weights.defined(), args.d_weights.defined())
      << "weights and their gradient come together";
  if (args.weights.defined()) {
    CHECK_F32_ELEMENTS(args.weights, args.dy.rows());
    CHECK_F32_ELEMENTS(args.d_weights, args.dy.rows());
  }
  CheckOffsets(args.offsets);
  device.kernels().swiglu_backward(device, args);
}

}  // namespace troupe
