// Ranks that lie along several axes of one size: squares, layers of them, and
// cubes. What the rows of tensor parallelism in several dimensions share.
#ifndef TROUPE_SCHEDULER_LAYOUTS_BLOCKS_H_
#define TROUPE_SCHEDULER_LAYOUTS_BLOCKS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "scheduler/layouts/layouts.h"

namespace troupe {

int Power(int base, int exponent);
// The largest whose power is no more than `value`.
int Root(int value, int exponent);
// Of a whole number, 2 or more.
bool IsPower(int value, int exponent);

// Of `layers` blocks of as many ranks along each of `sides` axes: the size of
// such an axis, and the field that says it.
AxisExtent SideOf(int ranks, int layers, int sides);

struct BlockShape {
  absl::string_view method;  // "3d"
  int sides = 1;
  absl::string_view name;  // of what the ranks are: "cube"
};
// InvalidArgument "parallelism.tensor: 12 ranks are no cube ...; use 8 or 27".
absl::Status CheckIsBlock(const BlockShape& shape, int ranks);

// The axes of a square (tensor_2d.cc).
std::vector<RowAxis> AxesOfSquare();

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_LAYOUTS_BLOCKS_H_
