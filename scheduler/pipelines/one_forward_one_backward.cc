#include "scheduler/pipelines/one_forward_one_backward.h"

#include <algorithm>

#include "proto/base/status.h"
#include "scheduler/pipelines/refusals.h"

namespace troupe {

absl::StatusOr<ComputeOrder> OneForwardOneBackwardOrder(
    const PipelineShape& shape) {
  RETURN_IF_ERROR(CheckVirtualStages("1f1b", 1, shape));
  ComputeOrder order(shape.ranks);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    const int in_flight = std::min(shape.ranks - rank, shape.micro_batches);
    int forward = 0;
    for (int backward = 0; backward < shape.micro_batches; ++backward) {
      while (forward < std::min(backward + in_flight, shape.micro_batches)) {
        order[rank].push_back({ComputeStep::kForward, rank, forward++});
      }
      order[rank].push_back({ComputeStep::kBackwardInput, rank, backward});
      order[rank].push_back({ComputeStep::kBackwardWeight, rank, backward});
    }
  }
  return order;
}

}  // namespace troupe
