// ZB-H1: 1F1B with the backward pass split in two, so that gradients of
// activations reach the ranks before sooner and gradients of weights fill what
// would be idle at the end. A third of 1F1B's bubble, no more memory than its
// first rank needs, but on every rank.
//
// Bubble, for P ranks and M micro-batches that take F forward, I for
// backward-input and W for backward-weight on a stage: every rank idles
// (P - 1) (F + I - W), for M >= P and W no longer than F and I. With fewer
// micro-batches, and F = I = W: (2 P - 1 - M) F. Peak of activations: min(P, M)
// micro-batches on every rank. For any P, M.
//
// Qi et al., "Zero Bubble Pipeline Parallelism", arXiv 2401.10241, section 2.1.
#ifndef TROUPE_SCHEDULER_PIPELINES_ZB_H1_H_
#define TROUPE_SCHEDULER_PIPELINES_ZB_H1_H_

#include "absl/status/statusor.h"
#include "scheduler/pipelines/compute_order.h"

namespace troupe {

// InvalidArgument: several virtual stages.
absl::StatusOr<ComputeOrder> ZbH1Order(const PipelineShape& shape);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PIPELINES_ZB_H1_H_
