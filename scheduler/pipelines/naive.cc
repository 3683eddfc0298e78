#include "scheduler/pipelines/naive.h"

#include "absl/strings/str_cat.h"

namespace troupe {

absl::StatusOr<ComputeOrder> NaiveOrder(const PipelineShape& shape) {
  if (shape.virtual_stages != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the naive schedule has one stage a rank, not ", shape.virtual_stages));
  }
  ComputeOrder order(shape.ranks);
  for (int stage = 0; stage < shape.ranks; ++stage) {
    for (int m = 0; m < shape.micro_batches; ++m) {
      order[stage].push_back({ComputeStep::kForward, stage, m});
      order[stage].push_back({ComputeStep::kBackwardInput, stage, m});
      order[stage].push_back({ComputeStep::kBackwardWeight, stage, m});
    }
  }
  return order;
}

}  // namespace troupe
