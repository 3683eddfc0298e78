#include "ops/average.h"

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/kernel_table.h"

namespace troupe {

void Average(Device& device, const AverageArgs& args) {
  CHECK_DENSE_F32(args.weights);
  CHECK_F32_ELEMENTS(args.average, args.weights.elements());
  CHECK(args.decay >= 0 && args.decay < 1) << args.decay;
  device.kernels().average(device, args);
}

}  // namespace troupe
