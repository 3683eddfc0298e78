#include "ops/optimizer.h"

#include "ops/check_tensor.h"
#include "ops/kernel_table.h"

namespace troupe {

void AdamW(Device& device, const AdamWArgs& args) {
  CHECK_DENSE_F32(args.weights);
  const int64_t n = args.weights.elements();
  CHECK_F32_ELEMENTS(args.gradients, n);
  CHECK_F32_ELEMENTS(args.first_moment, n);
  CHECK_F32_ELEMENTS(args.second_moment, n);
  if (args.parameters.defined()) CHECK_EQ(args.parameters.elements(), n);
  CHECK_GE(args.step, 1);
  device.kernels().adamw(device, args);
}

void Sgd(Device& device, const SgdArgs& args) {
  CHECK_DENSE_F32(args.weights);
  const int64_t n = args.weights.elements();
  CHECK_F32_ELEMENTS(args.gradients, n);
  CHECK_EQ(args.momentum_buffer.defined(), args.momentum != 0);
  if (args.momentum != 0) CHECK_F32_ELEMENTS(args.momentum_buffer, n);
  if (args.parameters.defined()) CHECK_EQ(args.parameters.elements(), n);
  device.kernels().sgd(device, args);
}

}  // namespace troupe
