#include "scheduler/pipelines/zb_h2.h"

#include "proto/base/status.h"
#include "scheduler/pipelines/refusals.h"
#include "scheduler/pipelines/zero_bubble.h"

namespace troupe {

absl::StatusOr<ComputeOrder> ZbH2Order(const PipelineShape& shape) {
  RETURN_IF_ERROR(CheckVirtualStages("zb_h2", 1, shape));
  return ZeroBubbleOrder(shape, /*depth=*/2);
}

}  // namespace troupe
