#include "ops/bias_gradient.h"

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/kernel_table.h"

namespace troupe {

void BiasGradient(Device& device, const BiasGradientArgs& args) {
  CHECK_ACTIVATION(args.dy);
  CHECK_GRADIENT(args.db, args.dy.dtype(), args.dy.columns());
  device.kernels().bias_gradient(device, args);
}

}  // namespace troupe
