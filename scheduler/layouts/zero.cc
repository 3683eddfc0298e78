#include "scheduler/layouts/zero.h"

#include <algorithm>

#include "proto/plan/axes.h"

namespace troupe {

ZeroRow ZeroRowOf(const ParallelismSpec& parallelism) {
  static constexpr ZeroRow kRows[] = {
      {},
      {.states = true},
      {.states = true, .gradients = true},
      {.states = true, .gradients = true, .parameters = true},
  };
  // What x of 3D has alike rests in slices with any.
  ZeroRow row = kRows[Is3D(parallelism) ? 3 : parallelism.zero()];
  row.gathered_for_each_use =
      row.parameters && parallelism.reshard_after_forward();
  return row;
}

int ZeroSizeAlong(absl::string_view axis, const ParallelismSpec& parallelism) {
  if (axis == "tensor_x") return SizeOfAxis(parallelism, axis);
  if (parallelism.zero() == 0) return 1;
  int left = parallelism.zero_size();
  for (const char* const dealt :
       {"ulysses", "context", "batch", "expert", "data"}) {
    const int ranks = std::min(left, SizeOfAxis(parallelism, dealt));
    if (axis == dealt) return ranks;
    left /= std::max(ranks, 1);
  }
  return 1;
}

}  // namespace troupe
