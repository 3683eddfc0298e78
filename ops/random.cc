#include "ops/random.h"

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/kernel_table.h"

namespace troupe {

void FillNormal(Device& device, const FillNormalArgs& args) {
  CHECK_DENSE_F32(args.x);
  device.kernels().fill_normal(device, args);
}

}  // namespace troupe
