#include "scheduler/pipelines/gpipe.h"

#include "proto/base/status.h"
#include "scheduler/pipelines/refusals.h"

namespace troupe {

absl::StatusOr<ComputeOrder> GpipeOrder(const PipelineShape& shape) {
  RETURN_IF_ERROR(CheckVirtualStages("gpipe", 1, shape));
  ComputeOrder order(shape.ranks);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    for (int m = 0; m < shape.micro_batches; ++m) {
      order[rank].push_back({ComputeStep::kForward, rank, m});
    }
    for (int m = shape.micro_batches - 1; m >= 0; --m) {
      order[rank].push_back({ComputeStep::kBackwardInput, rank, m});
      order[rank].push_back({ComputeStep::kBackwardWeight, rank, m});
    }
  }
  return order;
}

}  // namespace troupe
