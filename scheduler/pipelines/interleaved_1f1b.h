// Interleaved 1F1B: each rank has V stages, P stages apart, so that filling and
// draining the pipeline takes only the V-th part of 1F1B's time; for V times
// the transfers and somewhat more activations. For pipelines with few
// micro-batches for each rank and fast links.
//
// Stage s is on rank s mod P. Micro-batches go in groups of P: a group through
// the rank's first stage, then through its second, and so on; backward from the
// last stage. Rank r runs (V - 1) P + 2 (P - 1 - r) passes forward, then one
// forward and one backward in turns.
//
// Bubble, for M micro-batches that take F forward and B backward on a rank (all
// its stages): every rank idles (P - 1) (F + B) / V. Peak of activations:
// min(V M, (V - 1) P + 2 (P - 1 - r) + 1) of a stage and micro-batch on rank r,
// each the V-th part of what a rank of 1F1B keeps of a micro-batch. For M a
// multiple of P and V at least 2.
//
// Narayanan et al., "Efficient Large-Scale Language Model Training on GPU
// Clusters Using Megatron-LM", arXiv 2104.04473, section 2.2.
#ifndef TROUPE_SCHEDULER_PIPELINES_INTERLEAVED_1F1B_H_
#define TROUPE_SCHEDULER_PIPELINES_INTERLEAVED_1F1B_H_

#include "absl/status/statusor.h"
#include "scheduler/pipelines/compute_order.h"

namespace troupe {

// InvalidArgument: one stage a rank, or micro-batches that are no multiple of
// the ranks.
absl::StatusOr<ComputeOrder> Interleaved1F1BOrder(const PipelineShape& shape);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PIPELINES_INTERLEAVED_1F1B_H_
