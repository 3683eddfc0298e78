// Chimera: two pipelines through the same ranks in opposite directions, half of
// the micro-batches in each. Where one fills, the other computes: half of
// 1F1B's bubbles, and activations spread more evenly, for two replicas of the
// weights whose gradients are summed. For few micro-batches on deep pipelines.
//
// Stage s is on rank s for micro-batches that go down and on rank P - 1 - s for
// those that go up. Micro-batches come in units of P, the last of which may be
// smaller; the first half of a unit, rounded up, goes down. Within a unit each
// direction is 1F1B, and both merge without conflict where a forward takes as
// long as a backward. Units follow each other directly (the paper's "direct
// concatenation").
//
// Bubble, for M = k P micro-batches that take F forward and B >= F backward on
// a stage: every rank idles (P - 2) (B + (k - 1) (B - F)); for B = F, as in the
// paper's table 2, (P - 2) F, the share (P - 2) / (2 M + P - 2) of the step. If
// the last unit has n < P, and B = F: 2 (P - 1 - floor(n / 2)) F. Peak of
// activations on rank r: min(P - r, d) + min(r + 1, u) micro-batches, where a
// full unit sends d = u = P / 2 down and up: between P / 2 + 1 and P.
//
// For even P and any M. A single micro-batch goes down, and nothing is
// replicated.
//
// Li and Hoefler, "Chimera", arXiv 2107.06925, sections 3.1 (schedule), 3.5
// (more micro-batches than ranks).
#ifndef TROUPE_SCHEDULER_PIPELINES_CHIMERA_H_
#define TROUPE_SCHEDULER_PIPELINES_CHIMERA_H_

#include "absl/status/statusor.h"
#include "scheduler/pipelines/compute_order.h"

namespace troupe {

// InvalidArgument: an odd number of ranks, or several virtual stages: a rank's
// two stages are one of each direction.
absl::StatusOr<ComputeOrder> ChimeraOrder(const PipelineShape& shape);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PIPELINES_CHIMERA_H_
