#include "ops/rotary.h"

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/documents.h"
#include "ops/kernel_table.h"

namespace troupe {

void Rotary(Device& device, const RotaryArgs& args) {
  CHECK_ACTIVATION(args.x);
  CHECK(args.x.rank() == 3 && args.heads > 0 &&
        args.x.columns() % args.heads == 0)
      << args.x.ShapeString() << " for " << args.heads << " heads";
  const int64_t head_dim = args.x.columns() / args.heads;
  const int64_t turned = args.turned > 0 ? args.turned : head_dim;
  CHECK(turned % 2 == 0 && turned <= head_dim)
      << turned << " columns turn of heads of " << head_dim;
  CHECK(args.inverse_frequencies != nullptr);
  CHECK_GE(args.first_position, 0);
  CheckDocuments(args.documents, args.x.dim(0),
                 args.first_position + args.x.dim(1));
  device.kernels().rotary(device, args);
}

int64_t RotaryPairs(const RotaryArgs& args) {
  return (args.turned > 0 ? args.turned : args.x.columns() / args.heads) / 2;
}

}  // namespace troupe
