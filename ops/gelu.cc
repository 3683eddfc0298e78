#include "ops/gelu.h"

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/kernel_table.h"

namespace troupe {

void Gelu(Device& device, const GeluArgs& args) {
  CHECK_DENSE_ACTIVATION(args.x);
  CHECK_LIKE(args.y, args.x);
  device.kernels().gelu(device, args);
}

void GeluBackward(Device& device, const GeluBackwardArgs& args) {
  CHECK_DENSE_ACTIVATION(args.x);
  CHECK_LIKE(args.dy, args.x);
  CHECK_LIKE(args.dx, args.x);
  device.kernels().gelu_backward(device, args);
}

}  // namespace troupe
