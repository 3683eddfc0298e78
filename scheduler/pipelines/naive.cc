#include "scheduler/pipelines/naive.h"

#include "proto/base/status.h"
#include "scheduler/pipelines/refusals.h"

namespace troupe {

absl::StatusOr<ComputeOrder> NaiveOrder(const PipelineShape& shape) {
  RETURN_IF_ERROR(CheckVirtualStages("naive", 1, shape));
  ComputeOrder order(shape.ranks);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    for (int m = 0; m < shape.micro_batches; ++m) {
      order[rank].push_back({ComputeStep::kForward, rank, m});
      order[rank].push_back({ComputeStep::kBackwardInput, rank, m});
      order[rank].push_back({ComputeStep::kBackwardWeight, rank, m});
    }
  }
  return order;
}

}  // namespace troupe
