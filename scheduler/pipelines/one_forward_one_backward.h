// 1F1B, known as PipeDream-flush and DAPPLE: as GPipe, but a rank goes backward
// as soon as it can, so that what it keeps is bounded by the number of ranks
// and not by that of micro-batches. The usual choice.
//
// Rank r of P runs P - 1 - r micro-batches forward, then one forward and one
// backward in turns, then what is left backward.
//
// Bubble, for M micro-batches that take F forward and B backward on a stage:
// every rank idles (P - 1) (F + B), the share (P - 1) / (M + P - 1) of the
// step. Peak of activations: min(P - r, M) micro-batches on rank r. For any P,
// M.
//
// Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN Training", arXiv
// 2006.09503, section 3.2 (PipeDream-flush); Fan et al., "DAPPLE", arXiv
// 2007.01045, section 3.
#ifndef TROUPE_SCHEDULER_PIPELINES_ONE_FORWARD_ONE_BACKWARD_H_
#define TROUPE_SCHEDULER_PIPELINES_ONE_FORWARD_ONE_BACKWARD_H_

#include "absl/status/statusor.h"
#include "scheduler/pipelines/compute_order.h"

namespace troupe {

// InvalidArgument: several virtual stages, which `interleaved_1f1b` has.
absl::StatusOr<ComputeOrder> OneForwardOneBackwardOrder(
    const PipelineShape& shape);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PIPELINES_ONE_FORWARD_ONE_BACKWARD_H_
