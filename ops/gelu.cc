#include "ops/gelu.h"

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/kernel_table.h"

namespace troupe {
namespace {

template <typename Args>
void CheckRows(const Args& args) {
  if (args.weights.defined()) {
    CHECK_F32_ELEMENTS(args.weights, args.x.rows());
  }
  if (args.offsets.defined()) {
    CHECK_DTYPE(args.offsets, DType::kI32);
    CHECK(args.offsets.dense() && args.offsets.elements() > 1)
        << "offsets are " << args.offsets.ShapeString();
  }
  CHECK(!args.exact || !(args.weights.defined() || args.offsets.defined()))
      << "rows of experts are of the tanh form";
}

}  // namespace

void Gelu(Device& device, const GeluArgs& args) {
  CHECK_DENSE_ACTIVATION(args.x);
  CHECK_LIKE(args.y, args.x);
  CheckRows(args);
  device.kernels().gelu(device, args);
}

void GeluBackward(Device& device, const GeluBackwardArgs& args) {
  CHECK_DENSE_ACTIVATION(args.x);
  CHECK_LIKE(args.dy, args.x);
  CHECK_LIKE(args.dx, args.x);
  CheckRows(args);
  CHECK_EQ(args.weights.defined(), args.d_weights.defined())
      << "weights and their gradient come together";
  if (args.weights.defined()) {
    CHECK_F32_ELEMENTS(args.d_weights, args.x.rows());
  }
  device.kernels().gelu_backward(device, args);
}

}  // namespace troupe
