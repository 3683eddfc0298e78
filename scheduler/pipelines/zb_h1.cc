#include "scheduler/pipelines/zb_h1.h"

#include "proto/base/status.h"
#include "scheduler/pipelines/refusals.h"
#include "scheduler/pipelines/zero_bubble.h"

namespace troupe {

absl::StatusOr<ComputeOrder> ZbH1Order(const PipelineShape& shape) {
  RETURN_IF_ERROR(CheckVirtualStages("zb_h1", 1, shape));
  return ZeroBubbleOrder(shape, /*depth=*/1);
}

}  // namespace troupe
