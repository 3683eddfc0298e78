// PipeDream-2BW: 1F1B that never drains, with two versions of the weights.
// Every rank uses for all micro-batches of an optimizer step the weights from
// before the step before it, w(t+1) = w(t) - lr f'(w(t-1)): a delay of one
// step, the same for all, however deep the pipeline; gradients of the step's
// micro-batches are added up before the weights change.
//
// Bubble: none. Peak of activations: P - r micro-batches on rank r. For M >= P.
//
// Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN Training", arXiv
// 2006.09503, section 3.1.
#ifndef TROUPE_SCHEDULER_PIPELINES_PIPEDREAM_2BW_H_
#define TROUPE_SCHEDULER_PIPELINES_PIPEDREAM_2BW_H_

#include "absl/status/statusor.h"
#include "scheduler/pipelines/compute_order.h"

namespace troupe {

// InvalidArgument: several virtual stages, or fewer micro-batches than ranks.
absl::StatusOr<ComputeOrder> Pipedream2bwOrder(const PipelineShape& shape);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PIPELINES_PIPEDREAM_2BW_H_
