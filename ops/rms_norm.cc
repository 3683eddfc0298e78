#include "ops/rms_norm.h"

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/kernel_table.h"

namespace troupe {

void RmsNorm(Device& device, const RmsNormArgs& args) {
  CHECK_DENSE_ACTIVATION(args.x);
  CHECK_LIKE(args.y, args.x);
  CHECK_ELEMENTS(args.gamma, args.x.dtype(), args.x.columns());
  CHECK_EQ(args.residual.defined(), args.sum.defined());
  if (args.residual.defined()) {
    CHECK_LIKE(args.residual, args.x);
    CHECK_LIKE(args.sum, args.x);
    CHECK(args.sum.raw() != args.y.raw()) << "sum and y are one";
  }
  const float probability = args.dropout.probability;
  CHECK(probability >= 0 && probability < 1) << probability;
  CHECK(probability == 0 || args.residual.defined())
      << "dropout without a residual";
  if (args.rstd.defined()) CHECK_F32_ELEMENTS(args.rstd, args.x.rows());
  device.kernels().rms_norm(device, args);
}

void RmsNormBackwardInput(Device& device,
                          const RmsNormBackwardInputArgs& args) {
  CHECK_DENSE_ACTIVATION(args.dy);
  CHECK_LIKE(args.s, args.dy);
  CHECK_LIKE(args.dx, args.dy);
  if (args.residual_gradient.defined()) {
    CHECK_LIKE(args.residual_gradient, args.dy);
  }
  CHECK_ELEMENTS(args.gamma, args.dy.dtype(), args.dy.columns());
  CHECK_F32_ELEMENTS(args.rstd, args.dy.rows());
  device.kernels().rms_norm_backward_input(device, args);
}

void RmsNormBackwardWeight(Device& device,
                           const RmsNormBackwardWeightArgs& args) {
  CHECK_DENSE_ACTIVATION(args.dy);
  CHECK_LIKE(args.s, args.dy);
  CHECK_F32_ELEMENTS(args.rstd, args.dy.rows());
  CHECK_F32_ELEMENTS(args.dgamma, args.dy.columns());
  device.kernels().rms_norm_backward_weight(device, args);
}

}  // namespace troupe
