#include "ops/dropout.h"

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/kernel_table.h"

namespace troupe {

void ApplyDropout(Device& device, const ApplyDropoutArgs& args) {
  CHECK_DENSE_ACTIVATION(args.x);
  CHECK_LIKE(args.y, args.x);
  if (args.residual.defined()) CHECK_LIKE(args.residual, args.x);
  CHECK(args.mask.probability >= 0 && args.mask.probability < 1)
      << args.mask.probability;
  if (args.mask.columns != 0) {
    CHECK_EQ(args.mask.columns, args.x.columns());
    CHECK_GE(args.mask.row_stride, args.mask.columns);
  }
  device.kernels().apply_dropout(device, args);
}

}  // namespace troupe
