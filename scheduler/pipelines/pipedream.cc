#include "scheduler/pipelines/pipedream.h"

#include "proto/base/status.h"
#include "scheduler/pipelines/refusals.h"
#include "scheduler/pipelines/undrained.h"

namespace troupe {

// Ages: in the program of step s the newest weights are those of step s - 1. A
// micro-batch that a rank takes in a steps ahead of its own meets there, in
// program s - a, the weights of step s - a - 1: a steps older than the newest
// of program s, in which it goes backward.
absl::StatusOr<ComputeOrder> PipedreamOrder(const PipelineShape& shape) {
  RETURN_IF_ERROR(CheckVirtualStages("pipedream", 1, shape));
  const bool synced = shape.Has(kVerticalSync);
  ComputeOrder order = UndrainedOrder(shape);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    for (ComputeStep& step : order[rank]) {
      const int chosen_on = synced ? 0 : rank;
      const int age = UndrainedAhead(
          shape, {.rank = chosen_on, .micro_batch = step.micro_batch});
      step.weight_version = age - step.ahead;
    }
  }
  return order;
}

}  // namespace troupe
