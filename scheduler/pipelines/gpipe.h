// GPipe: all micro-batches go forward, then all go backward. Simple, and every
// rank keeps the activations of the whole step: for few micro-batches, or with
// recomputation.
//
// Bubble, for P ranks and M micro-batches that take F forward and B backward on
// a stage: every rank idles (P - 1) (F + B), the share (P - 1) / (M + P - 1) of
// the step. Peak of activations: M micro-batches on every rank. For any P, M.
//
// Huang et al., "GPipe", arXiv 1811.06965, section 2.3 (figure 2c).
#ifndef TROUPE_SCHEDULER_PIPELINES_GPIPE_H_
#define TROUPE_SCHEDULER_PIPELINES_GPIPE_H_

#include "absl/status/statusor.h"
#include "scheduler/pipelines/compute_order.h"

namespace troupe {

// InvalidArgument: several virtual stages. Backward goes from the last
// micro-batch to the first.
absl::StatusOr<ComputeOrder> GpipeOrder(const PipelineShape& shape);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PIPELINES_GPIPE_H_
