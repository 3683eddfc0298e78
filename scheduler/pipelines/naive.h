// The plainest schedule: each micro-batch goes forward through all stages and
// backward again before the next one starts (inter-layer model parallelism). On
// one rank that is gradient accumulation. On several only one computes at a
// time; it serves as the measure of the others, and where a rank must hold no
// more than the activations of one micro-batch.
//
// Bubble, for P ranks and M micro-batches that take F forward and B backward on
// a stage: every rank idles (P - 1) M (F + B). Peak of activations: those of
// one micro-batch on every rank.
#ifndef TROUPE_SCHEDULER_PIPELINES_NAIVE_H_
#define TROUPE_SCHEDULER_PIPELINES_NAIVE_H_

#include "absl/status/statusor.h"
#include "scheduler/pipelines/compute_order.h"

namespace troupe {

// InvalidArgument: several virtual stages, which would help nothing here.
absl::StatusOr<ComputeOrder> NaiveOrder(const PipelineShape& shape);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PIPELINES_NAIVE_H_
