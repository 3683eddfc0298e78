#include "ops/grouped_matmul.h"

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/kernel_table.h"

namespace troupe {
namespace {

// Offsets of the groups of a tensor of matrices.
void CheckOffsets(const Tensor& offsets, const Tensor& matrices) {
  CHECK_EQ(matrices.rank(), 3) << "matrices are " << matrices.ShapeString()
                               << ", want [groups, rows, columns]";
  CHECK_ELEMENTS(offsets, DType::kI32, matrices.dim(0) + 1);
}

}  // namespace

void GroupedMatMul(Device& device, const GroupedMatMulArgs& args) {
  CHECK_ACTIVATION(args.a);
  CHECK(args.a.rank() == 2 && args.c.rank() == 2)
      << args.a.ShapeString() << " into " << args.c.ShapeString();
  CHECK_DTYPE(args.b, args.a.dtype());
  CHECK_DTYPE(args.c, args.a.dtype());
  CheckOffsets(args.offsets, args.b);
  const int64_t k = args.b.dim(args.transpose_b ? 2 : 1);
  const int64_t n = args.b.dim(args.transpose_b ? 1 : 2);
  CHECK(args.a.columns() == k && args.c.columns() == n &&
        args.a.rows() == args.c.rows())
      << args.a.ShapeString() << " by " << args.b.ShapeString()
      << (args.transpose_b ? " transposed" : "") << " into "
      << args.c.ShapeString();
  device.kernels().grouped_matmul(device, args);
}

void GroupedWeightGradient(Device& device,
                           const GroupedWeightGradientArgs& args) {
  CHECK_ACTIVATION(args.x);
  CHECK(args.x.rank() == 2 && args.dy.rank() == 2)
      << args.dy.ShapeString() << " by " << args.x.ShapeString();
  CHECK_DTYPE(args.dy, args.x.dtype());
  CHECK(args.dw.defined() &&
        (args.dw.dtype() == DType::kF32 || args.dw.dtype() == args.x.dtype()))
      << "dw is " << args.dw.ShapeString() << ", wants f32 or "
      << DTypeName(args.x.dtype());
  CheckOffsets(args.offsets, args.dw);
  CHECK(args.dw.dense()) << "dw is " << args.dw.ShapeString() << " with gaps";
  CHECK(args.x.rows() == args.dy.rows() &&
        args.dw.dim(1) == args.dy.columns() &&
        args.dw.dim(2) == args.x.columns())
      << args.dy.ShapeString() << " transposed by " << args.x.ShapeString()
      << " into " << args.dw.ShapeString();
  device.kernels().grouped_weight_gradient(device, args);
}

}  // namespace troupe
