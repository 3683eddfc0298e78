#include "ops/adafactor.h"

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/kernel_table.h"
#include "proto/base/matrix_workspace.h"

namespace troupe {

AdafactorScratch AdafactorScratchIn(const AdafactorArgs& args) {
  const int64_t rows = args.weights.dim(0);
  double* const doubles = reinterpret_cast<double*>(args.workspace.raw());
  float* const floats = reinterpret_cast<float*>(doubles + 2 * (rows + 1));
  return {.row_squares = doubles,
          .squares = doubles + 2 * rows,
          .row_factors = floats,
          .column_factors = floats + rows};
}

void Adafactor(Device& device, const AdafactorArgs& args) {
  CHECK_DENSE_F32(args.weights);
  CHECK_EQ(args.weights.rank(), 2);
  const int64_t rows = args.weights.dim(0), columns = args.weights.dim(1);
  CHECK_GT(rows * columns, 0);
  CHECK_GRADIENT(
      args.gradients,
      args.parameters.defined() ? args.parameters.dtype() : DType::kF32,
      rows * columns);
  if (args.second_moment.defined()) {
    CHECK_EQ(rows, 1) << "second moments of a matrix are factored";
    CHECK_F32_ELEMENTS(args.second_moment, columns);
    CHECK(!args.row_moment.defined() && !args.column_moment.defined());
  } else {
    CHECK_F32_ELEMENTS(args.row_moment, rows);
    CHECK_F32_ELEMENTS(args.column_moment, columns);
  }
  if (args.parameters.defined()) {
    CHECK_DENSE_ACTIVATION(args.parameters);
    CHECK_EQ(args.parameters.elements(), rows * columns);
  }
  CHECK(args.beta2 >= 0 && args.beta2 < 1) << args.beta2;
  CHECK_DENSE_F32(args.workspace);
  CHECK_GE(args.workspace.elements(), AdafactorWorkspace(rows, columns));
  device.kernels().adafactor(device, args);
}

}  // namespace troupe
