#include "ops/swiglu.h"

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/kernel_table.h"

namespace troupe {

void SwiGlu(Device& device, const SwiGluArgs& args) {
  CHECK_DENSE_ACTIVATION(args.y);
  CHECK_STRIDED_LIKE(args.gate, args.y);
  CHECK_STRIDED_LIKE(args.up, args.y);
  device.kernels().swiglu(device, args);
}

void SwiGluBackward(Device& device, const SwiGluBackwardArgs& args) {
  CHECK_DENSE_ACTIVATION(args.dy);
  CHECK_STRIDED_LIKE(args.gate, args.dy);
  CHECK_STRIDED_LIKE(args.up, args.dy);
  CHECK_STRIDED_LIKE(args.d_gate, args.dy);
  CHECK_STRIDED_LIKE(args.d_up, args.dy);
  CHECK(args.d_gate.raw() != args.d_up.raw()) << "d_gate and d_up are one";
  device.kernels().swiglu_backward(device, args);
}

}  // namespace troupe
