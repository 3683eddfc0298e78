// What several schedules refuse, in the words of the job file.
#ifndef TROUPE_SCHEDULER_PIPELINES_REFUSALS_H_
#define TROUPE_SCHEDULER_PIPELINES_REFUSALS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "scheduler/pipelines/compute_order.h"

namespace troupe {

// OK where each rank has `count` stages.
absl::Status CheckVirtualStages(absl::string_view schedule, int count,
                                const PipelineShape& shape);

// OK where the micro-batches of a step are a multiple of `divisor`.
absl::Status CheckMicroBatchMultiple(absl::string_view schedule, int divisor,
                                     const PipelineShape& shape);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PIPELINES_REFUSALS_H_
