#include "ops/layer_norm.h"

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/kernel_table.h"

namespace troupe {

void LayerNorm(Device& device, const LayerNormArgs& args) {
  CHECK_DENSE_ACTIVATION(args.x);
  CHECK_LIKE(args.y, args.x);
  CHECK_ELEMENTS(args.gamma, args.x.dtype(), args.x.columns());
  CHECK_ELEMENTS(args.beta, args.x.dtype(), args.x.columns());
  CHECK_EQ(args.residual.defined(), args.sum.defined());
  CHECK_EQ(args.mean.defined(), args.rstd.defined());
  if (args.residual.defined()) {
    CHECK_LIKE(args.residual, args.x);
    CHECK_LIKE(args.sum, args.x);
    CHECK(args.sum.raw() != args.y.raw()) << "sum and y are one";
  }
  const float probability = args.dropout.probability;
  CHECK(probability >= 0 && probability < 1) << probability;
  CHECK(probability == 0 || args.residual.defined())
      << "dropout without a residual";
  CHECK_EQ(args.dropout.columns, 0) << "dropout of some columns";
  if (args.mean.defined()) {
    CHECK_F32_ELEMENTS(args.mean, args.x.rows());
    CHECK_F32_ELEMENTS(args.rstd, args.x.rows());
  }
  device.kernels().layer_norm(device, args);
}

void LayerNormBackwardInput(Device& device,
                            const LayerNormBackwardInputArgs& args) {
  CHECK_DENSE_ACTIVATION(args.dy);
  CHECK_LIKE(args.s, args.dy);
  CHECK_LIKE(args.dx, args.dy);
  if (args.residual_gradient.defined()) {
    CHECK_LIKE(args.residual_gradient, args.dy);
  }
  CHECK_ELEMENTS(args.gamma, args.dy.dtype(), args.dy.columns());
  CHECK_F32_ELEMENTS(args.mean, args.dy.rows());
  CHECK_F32_ELEMENTS(args.rstd, args.dy.rows());
  device.kernels().layer_norm_backward_input(device, args);
}

void LayerNormBackwardWeight(Device& device,
                             const LayerNormBackwardWeightArgs& args) {
  CHECK_DENSE_ACTIVATION(args.dy);
  CHECK_LIKE(args.s, args.dy);
  CHECK_F32_ELEMENTS(args.mean, args.dy.rows());
  CHECK_F32_ELEMENTS(args.rstd, args.dy.rows());
  CHECK(args.dgamma.defined() || args.dbeta.defined());
  for (const Tensor& gradient : {args.dgamma, args.dbeta}) {
    if (!gradient.defined()) continue;
    CHECK_GRADIENT(gradient, args.dy.dtype(), args.dy.columns());
  }
  device.kernels().layer_norm_backward_weight(device, args);
}

}  // namespace troupe
