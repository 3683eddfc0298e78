// The plainest schedule: each micro-batch goes forward through all stages and
// backward again before the next one starts. On one stage that is gradient
// accumulation, with the activations of one micro-batch in memory. On several
// stages only one rank computes at a time.
#ifndef TROUPE_SCHEDULER_PIPELINES_NAIVE_H_
#define TROUPE_SCHEDULER_PIPELINES_NAIVE_H_

#include "absl/status/statusor.h"
#include "scheduler/pipelines/pipelines.h"

namespace troupe {

// InvalidArgument: several virtual stages, which would help nothing here.
absl::StatusOr<ComputeOrder> NaiveOrder(const PipelineShape& shape);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PIPELINES_NAIVE_H_
