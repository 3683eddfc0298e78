#include "ops/reduce.h"

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/kernel_table.h"

namespace troupe {

void SumOfSquares(Device& device, const SumOfSquaresArgs& args) {
  CHECK_DENSE_ACTIVATION(args.x);
  CHECK_DTYPE(args.result, DType::kF64);
  CHECK_EQ(args.result.elements(), 1);
  device.kernels().sum_of_squares(device, args);
}

void Add(Device& device, const AddArgs& args) {
  CHECK_ACTIVATION(args.x);
  if (args.x.dense() && args.y.dense()) {
    CHECK_ELEMENTS(args.y, args.x.dtype(), args.x.elements());
  } else {
    CHECK_STRIDED_LIKE(args.y, args.x);
  }
  device.kernels().add(device, args);
}

void Scale(Device& device, const ScaleArgs& args) {
  CHECK_DENSE_ACTIVATION(args.x);
  device.kernels().scale(device, args);
}

void Fill(Device& device, const FillArgs& args) {
  CHECK_DENSE_ACTIVATION(args.x);
  device.kernels().fill(device, args);
}

void Copy(Device& device, const CopyArgs& args) {
  CHECK(args.x.defined() && args.y.defined());
  if (args.x.dtype() != args.y.dtype()) {
    CHECK_ACTIVATION(args.x);
    CHECK_ACTIVATION(args.y);
    CHECK(args.x.dtype() == DType::kF32 || args.y.dtype() == DType::kF32)
        << args.x.ShapeString() << " to " << args.y.ShapeString();
  }
  CHECK(args.x.SameShape(args.y))
      << args.x.ShapeString() << " to " << args.y.ShapeString();
  device.kernels().copy(device, args);
}

}  // namespace troupe
