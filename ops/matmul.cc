#include "ops/matmul.h"

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/kernel_table.h"

namespace troupe {

void MatMul(Device& device, const MatMulArgs& args) {
  CHECK_ACTIVATION(args.a);
  CHECK_DTYPE(args.b, args.a.dtype());
  CHECK_ACTIVATION(args.c);
  CHECK(args.c.dtype() == args.a.dtype() || args.c.dtype() == DType::kF32)
      << args.a.ShapeString() << " into " << args.c.ShapeString();
  const int64_t m = args.c.rows();
  const int64_t n = args.c.columns();
  const int64_t k = args.transpose_a ? args.a.rows() : args.a.columns();
  CHECK_EQ(args.transpose_a ? args.a.columns() : args.a.rows(), m)
      << args.a.ShapeString() << " into " << args.c.ShapeString();
  CHECK_EQ(args.transpose_b ? args.b.columns() : args.b.rows(), k)
      << args.a.ShapeString() << " by " << args.b.ShapeString();
  CHECK_EQ(args.transpose_b ? args.b.rows() : args.b.columns(), n)
      << args.b.ShapeString() << " into " << args.c.ShapeString();
  CHECK_GE(k, 1) << args.a.ShapeString();
  const bool activation = args.activation != Activation::kNone;
  CHECK(!args.accumulate || (!args.bias.defined() && !activation));
  if (args.bias.defined()) {
    CHECK_ELEMENTS(args.bias, args.a.dtype(), n);
  }
  if (args.pre_activation.defined()) {
    CHECK(activation) << "pre_activation without an activation";
    CHECK_ELEMENTS(args.pre_activation, args.c.dtype(), m * n);
  }
  if (args.gelu_input.defined()) {
    CHECK(!args.accumulate && !args.bias.defined() && !activation);
    CHECK_ELEMENTS(args.c, args.a.dtype(), m * n);
    CHECK_ELEMENTS(args.gelu_input, args.a.dtype(), m * n);
  }
  if (args.residual.defined()) {
    CHECK(!args.accumulate && !activation && !args.gelu_input.defined());
    CHECK_STRIDED_LIKE(args.residual, args.c);
  }
  if (m == 0 || n == 0) return;
  device.kernels().matmul(device, args);
}

}  // namespace troupe
