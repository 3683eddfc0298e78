// ZB-H2: twice as many forwards before the first backward as in ZB-H1, and no
// bubble is left where all passes take the same time: each rank computes
// without a gap from its first forward on, a little later than the rank before
// it. For twice the activations of 1F1B.
//
// The last rank ends P - 1 forwards after the first, so that the gain is real
// only where ranks start the next optimizer step without waiting for each
// other: docs/pipelines.md says when they do.
//
// Bubble, for P ranks and M micro-batches that take F forward, I for
// backward-input and W for backward-weight on a stage: every rank idles
// (P - 1) (F + I - 2 W) between its first start and its last end, for M >=
// 2 P - 1 and W no longer than F and I. With fewer micro-batches, and F = I =
// W: (2 P - 1 - M) F. Peak of activations: min(2 P - 1, M) micro-batches on
// every rank. For any P, M.
//
// Qi et al., "Zero Bubble Pipeline Parallelism", arXiv 2401.10241, section 2.2.
#ifndef TROUPE_SCHEDULER_PIPELINES_ZB_H2_H_
#define TROUPE_SCHEDULER_PIPELINES_ZB_H2_H_

#include "absl/status/statusor.h"
#include "scheduler/pipelines/compute_order.h"

namespace troupe {

// InvalidArgument: several virtual stages.
absl::StatusOr<ComputeOrder> ZbH2Order(const PipelineShape& shape);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PIPELINES_ZB_H2_H_
