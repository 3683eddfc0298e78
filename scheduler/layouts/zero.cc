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
  const int of_a_sequence =
      std::min(parallelism.context(), parallelism.zero_size());
  const int neighbours =
      std::min(SizeOfAxis(parallelism, "ulysses"), of_a_sequence);
  if (axis == "ulysses") return neighbours;
  if (axis == "context") return of_a_sequence / neighbours;
  return axis == "data" ? parallelism.zero_size() / of_a_sequence : 1;
}

}  // namespace troupe
