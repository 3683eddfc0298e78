#include "ops/split_norm.h"

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/kernel_table.h"

namespace troupe {

void RowSums(Device& device, const RowSumsArgs& args) {
  CHECK_DENSE_ACTIVATION(args.x);
  CHECK_ELEMENTS(args.row_sums, DType::kF64, 2 * args.x.rows());
  device.kernels().row_sums(device, args);
}

void RowSumsBackward(Device& device, const RowSumsBackwardArgs& args) {
  CHECK_DENSE_ACTIVATION(args.x);
  CHECK_ELEMENTS(args.row_sums_gradient, DType::kF64, 2 * args.x.rows());
  if (args.residual_gradient.defined()) {
    CHECK_LIKE(args.residual_gradient, args.x);
  }
  CHECK_LIKE(args.dx, args.x);
  device.kernels().row_sums_backward(device, args);
}

void SplitNorm(Device& device, const SplitNormArgs& args) {
  CHECK_DENSE_ACTIVATION(args.x);
  CHECK_ELEMENTS(args.row_sums, DType::kF64, 2 * args.x.rows());
  CHECK_GE(args.columns, args.x.columns());
  CHECK_ELEMENTS(args.gamma, args.x.dtype(), args.x.columns());
  if (args.beta.defined()) {
    CHECK_ELEMENTS(args.beta, args.x.dtype(), args.x.columns());
  }
  CHECK_LIKE(args.y, args.x);
  CHECK_EQ(args.mean.defined(), args.rstd.defined() && args.centred);
  if (args.mean.defined()) CHECK_F32_ELEMENTS(args.mean, args.x.rows());
  if (args.rstd.defined()) CHECK_F32_ELEMENTS(args.rstd, args.x.rows());
  device.kernels().split_norm(device, args);
}

void SplitNormBackwardInput(Device& device,
                            const SplitNormBackwardInputArgs& args) {
  CHECK_DENSE_ACTIVATION(args.dy);
  CHECK_LIKE(args.x, args.dy);
  CHECK_ELEMENTS(args.gamma, args.dy.dtype(), args.dy.columns());
  if (args.mean.defined()) CHECK_F32_ELEMENTS(args.mean, args.dy.rows());
  CHECK_F32_ELEMENTS(args.rstd, args.dy.rows());
  CHECK_GE(args.columns, args.dy.columns());
  if (args.residual_gradient.defined()) {
    CHECK_LIKE(args.residual_gradient, args.dy);
  }
  CHECK_LIKE(args.dx, args.dy);
  CHECK_ELEMENTS(args.row_sums_gradient, DType::kF64, 2 * args.dy.rows());
  device.kernels().split_norm_backward_input(device, args);
}

}  // namespace troupe
