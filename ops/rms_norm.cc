#include "ops/rms_norm.h"

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/kernel_table.h"

namespace troupe {
namespace {

// Of one shape, and their rows lie alike.
void CheckRowsLike(const Tensor& tensor, const Tensor& other) {
  CHECK_STRIDED_LIKE(tensor, other);
  CHECK_EQ(RowGroupsOf(tensor).stride, RowGroupsOf(other).stride);
}

}  // namespace

RowGroups RowGroupsOf(const Tensor& tensor) {
  const int64_t n = tensor.columns();
  if (tensor.dense()) return {.count = tensor.rows(), .stride = n};
  const int heads = tensor.rank() - 2;
  CHECK(heads > 0 && tensor.stride(heads) == n)
      << tensor.ShapeString() << " has gaps between rows";
  RowGroups groups = {.count = tensor.dim(0),
                      .rows = tensor.dim(heads),
                      .stride = tensor.stride(heads - 1),
                      .dense = false};
  for (int i = 1; i < heads; ++i) {
    CHECK_EQ(tensor.stride(i - 1), tensor.dim(i) * tensor.stride(i))
        << tensor.ShapeString() << " has gaps between more than heads";
    groups.count *= tensor.dim(i);
  }
  return groups;
}

void RmsNorm(Device& device, const RmsNormArgs& args) {
  CHECK_ACTIVATION(args.x);
  CheckRowsLike(args.y, args.x);
  CHECK_ELEMENTS(args.gamma, args.x.dtype(), args.x.columns());
  CHECK_EQ(args.residual.defined(), args.sum.defined());
  if (args.residual.defined()) {
    CHECK_DENSE_ACTIVATION(args.x);
    CHECK_LIKE(args.residual, args.x);
    CHECK_LIKE(args.sum, args.x);
    CHECK(args.sum.raw() != args.y.raw()) << "sum and y are one";
  }
  const float probability = args.dropout.probability;
  CHECK(probability >= 0 && probability < 1) << probability;
  CHECK(probability == 0 || args.residual.defined())
      << "dropout without a residual";
  CHECK_EQ(args.dropout.columns, 0) << "dropout of some columns";
  if (args.rstd.defined()) CHECK_F32_ELEMENTS(args.rstd, args.x.rows());
  device.kernels().rms_norm(device, args);
}

void RmsNormBackwardInput(Device& device,
                          const RmsNormBackwardInputArgs& args) {
  CHECK_ACTIVATION(args.dy);
  CheckRowsLike(args.s, args.dy);
  CheckRowsLike(args.dx, args.dy);
  if (args.residual_gradient.defined()) {
    CHECK_DENSE_ACTIVATION(args.dy);
    CHECK_LIKE(args.residual_gradient, args.dy);
  }
  CHECK_ELEMENTS(args.gamma, args.dy.dtype(), args.dy.columns());
  CHECK_F32_ELEMENTS(args.rstd, args.dy.rows());
  device.kernels().rms_norm_backward_input(device, args);
}

void RmsNormBackwardWeight(Device& device,
                           const RmsNormBackwardWeightArgs& args) {
  CHECK_ACTIVATION(args.dy);
  CheckRowsLike(args.s, args.dy);
  CHECK_F32_ELEMENTS(args.rstd, args.dy.rows());
  CHECK_GRADIENT(args.dgamma, args.dy.dtype(), args.dy.columns());
  device.kernels().rms_norm_backward_weight(device, args);
}

}  // namespace troupe
