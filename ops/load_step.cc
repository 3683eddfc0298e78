#include "ops/load_step.h"

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/kernel_table.h"

namespace troupe {

void LoadStep(Device& device, const LoadStepArgs& args) {
  CHECK_DENSE_F32(args.weights);
  CHECK_F32_ELEMENTS(args.load, args.weights.elements());
  if (args.parameters.defined()) {
    CHECK_DENSE_ACTIVATION(args.parameters);
    CHECK(args.parameters.elements() == args.weights.elements())
        << args.parameters.ShapeString();
  }
  CHECK(args.mean > 0) << args.mean;
  device.kernels().load_step(device, args);
}

}  // namespace troupe
