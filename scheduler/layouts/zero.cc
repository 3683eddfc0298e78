#include "scheduler/layouts/zero.h"

namespace troupe {

ZeroRow ZeroRowOf(const ParallelismSpec& parallelism) {
  static constexpr ZeroRow kRows[] = {
      {},
      {.states = true},
      {.states = true, .gradients = true},
      {.states = true, .gradients = true, .parameters = true},
  };
  ZeroRow row = kRows[parallelism.zero()];
  row.gathered_for_each_use =
      row.parameters && parallelism.reshard_after_forward();
  return row;
}

int ZeroSize(const ParallelismSpec& parallelism) {
  return parallelism.zero() > 0 ? parallelism.zero_size() : 1;
}

}  // namespace troupe
