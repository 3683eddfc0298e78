#include "ops/rotary.h"

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/kernel_table.h"

namespace troupe {

void Rotary(Device& device, const RotaryArgs& args) {
  CHECK_ACTIVATION(args.x);
  CHECK(args.x.rank() == 3 && args.heads > 0 &&
        args.x.columns() % (2 * args.heads) == 0)
      << args.x.ShapeString() << " for " << args.heads
      << " heads of an even number of columns";
  CHECK(args.inverse_frequencies != nullptr);
  CHECK_GE(args.first_position, 0);
  device.kernels().rotary(device, args);
}

}  // namespace troupe
