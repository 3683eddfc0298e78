#include "scheduler/pipelines/pipedream_2bw.h"

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "scheduler/pipelines/refusals.h"
#include "scheduler/pipelines/undrained.h"

namespace troupe {

absl::StatusOr<ComputeOrder> Pipedream2bwOrder(const PipelineShape& shape) {
  RETURN_IF_ERROR(CheckVirtualStages("pipedream_2bw", 1, shape));
  if (shape.micro_batches < shape.ranks) {
    return absl::InvalidArgumentError(
        absl::StrCat("training.global_batch_size: pipedream_2bw on ",
                     shape.ranks, " ranks takes at least ", shape.ranks,
                     " micro-batches a step from each data replica, not ",
                     shape.micro_batches));
  }
  ComputeOrder order = UndrainedOrder(shape);
  for (std::vector<ComputeStep>& steps : order) {
    // One step old on the step's own account; the newest, seen from the step
    // before it.
    for (ComputeStep& step : steps) step.weight_version = 1 - step.ahead;
  }
  return order;
}

}  // namespace troupe
