#include "ops/cross_entropy.h"

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/kernel_table.h"

namespace troupe {

void CrossEntropy(Device& device, const CrossEntropyArgs& args) {
  CHECK_ACTIVATION(args.logits);
  CHECK_DTYPE(args.targets, DType::kI32);
  CHECK_DTYPE(args.loss_sum, DType::kF64);
  CHECK_GT(args.logits.columns(), 0);
  CHECK(args.targets.dense() && args.targets.elements() == args.logits.rows())
      << args.targets.ShapeString() << " for " << args.logits.ShapeString();
  CHECK_EQ(args.loss_sum.elements(), 1);
  if (args.count.defined()) {
    CHECK_ELEMENTS(args.count, DType::kF64, 1);
  }
  if (args.losses.defined()) {
    CHECK_F32_ELEMENTS(args.losses, args.logits.rows());
  }
  device.kernels().cross_entropy(device, args);
}

}  // namespace troupe
