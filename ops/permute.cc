#include "ops/permute.h"

#include <limits>

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/kernel_table.h"

namespace troupe {

void SortChoices(Device& device, const SortChoicesArgs& args) {
  CHECK_DTYPE(args.choices, DType::kI32);
  CHECK(args.choices.dense()) << args.choices.ShapeString() << " with gaps";
  const int64_t count = args.choices.elements();
  CHECK_LE(count, std::numeric_limits<int32_t>::max());
  CHECK_ELEMENTS(args.sources, DType::kI32, count);
  CHECK_ELEMENTS(args.places, DType::kI32, count);
  CHECK_DTYPE(args.offsets, DType::kI32);
  CHECK(args.offsets.dense() && args.offsets.elements() >= 2)
      << "offsets are " << args.offsets.ShapeString();
  device.kernels().sort_choices(device, args);
}

void GatherRows(Device& device, const GatherRowsArgs& args) {
  CHECK_DENSE_ACTIVATION(args.x);
  CHECK_DENSE_ACTIVATION(args.y);
  CHECK(args.x.dtype() == args.y.dtype() &&
        args.x.columns() == args.y.columns())
      << "rows of " << args.x.ShapeString() << " into those of "
      << args.y.ShapeString();
  CHECK_ELEMENTS(args.sources, DType::kI32, args.y.rows());
  CHECK_GE(args.choices, 1);
  device.kernels().gather_rows(device, args);
}

void SumRows(Device& device, const SumRowsArgs& args) {
  CHECK_DENSE_ACTIVATION(args.x);
  CHECK_DENSE_ACTIVATION(args.y);
  CHECK(args.x.dtype() == args.y.dtype() &&
        args.x.columns() == args.y.columns())
      << "rows of " << args.x.ShapeString() << " into those of "
      << args.y.ShapeString();
  CHECK_DTYPE(args.places, DType::kI32);
  CHECK(args.places.dense() && args.places.rows() == args.y.rows() &&
        args.places.columns() >= 1)
      << "places are " << args.places.ShapeString() << ", of the sums "
      << args.y.ShapeString();
  if (args.residual.defined()) CHECK_LIKE(args.residual, args.y);
  device.kernels().sum_rows(device, args);
}

}  // namespace troupe
