// ZB-V: no bubble, as ZB-H2, with the activations of 1F1B. Each rank has two
// stages: stage s is on rank s for s < P and on rank 2 P - 1 - s for the
// others, so that a micro-batch goes down through all ranks and up again, its
// loss is where it came in, and what a rank keeps of early and late stages adds
// up to the same everywhere.
//
// Rank r runs 2 (P - r) - 1 forwards down; then forwards up and down in turns,
// r of each, until 2 P passes are kept; then P - r times forward up,
// backward-input, backward-weight; then down and up in turns, both forward,
// backward-input, backward-weight; and drains. The paper gives no such rule but
// a picture, figure 8, and the memory limit; this rule draws that figure, but
// for the order of weights while ranks drain.
//
// As for ZB-H2, ranks end at different times.
//
// Bubble, for M >= 2 P - 1 micro-batches whose forward, backward-input and
// backward-weight take the same time on a stage: none between a rank's first
// start and its last end. With fewer, in passes: 2 P - 1 - M for M >= P,
// 4 (P - 1) - 3 (M - 1) for M < P. Peak of activations: min(2 P, 2 M, M + r
// + 1) of a stage and micro-batch on rank r, each half of what a rank of 1F1B
// keeps of a micro-batch. For any P, M.
//
// Qi et al., "Zero Bubble Pipeline Parallelism", arXiv 2401.10241, section 6.
#ifndef TROUPE_SCHEDULER_PIPELINES_ZB_V_H_
#define TROUPE_SCHEDULER_PIPELINES_ZB_V_H_

#include "absl/status/statusor.h"
#include "scheduler/pipelines/compute_order.h"

namespace troupe {

// InvalidArgument: other than two virtual stages.
absl::StatusOr<ComputeOrder> ZbVOrder(const PipelineShape& shape);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PIPELINES_ZB_V_H_
