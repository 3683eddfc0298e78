#include "scheduler/pipelines/refusals.h"

#include "absl/strings/str_cat.h"

namespace troupe {

absl::Status CheckVirtualStages(absl::string_view schedule, int count,
                                const PipelineShape& shape) {
  if (shape.virtual_stages == count) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("parallelism.virtual_stages: ", schedule, " has ", count,
                   count == 1 ? " stage" : " stages", " a rank, not ",
                   shape.virtual_stages, "; leave it out"));
}

absl::Status CheckMicroBatchMultiple(absl::string_view schedule, int divisor,
                                     const PipelineShape& shape) {
  const int rest = shape.micro_batches % divisor;
  if (rest == 0) return absl::OkStatus();
  const int below = shape.micro_batches - rest;
  return absl::InvalidArgumentError(
      absl::StrCat("training.global_batch_size: ", schedule, " on ",
                   shape.ranks, " ranks takes a multiple of ", divisor,
                   " micro-batches a step from each data replica, not ",
                   shape.micro_batches, "; the nearest ",
                   below == 0 ? "is " : absl::StrCat("are ", below, " and "),
                   below + divisor));
}

}  // namespace troupe
