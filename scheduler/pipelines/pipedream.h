// PipeDream: 1F1B that never drains. Each rank updates its weights after each
// optimizer step's micro-batches without waiting for the others: no bubble, but
// gradients are of weights that are up to P - 1 micro-batches old, and the
// model is not the one that synchronous training gives.
//
// Weight stashing: a micro-batch goes backward on a rank with the weights with
// which it went forward there, the newest that the rank had then. Rank r keeps
// 1 + ceil((P - 1 - r) / M) versions. The paper's optimizer steps have one
// micro-batch (M = 1): P - r versions.
//
// Vertical sync (`vertical_sync`): a micro-batch uses on every rank the weights
// that it used on rank 0, so that its gradient is that of one model. Every rank
// keeps as many versions as rank 0.
//
// Bubble: none. Peak of activations: P - r micro-batches on rank r. For any P,
// M.
//
// Harlap et al., "PipeDream", arXiv 1806.03377, sections 3.3 (1F1B) and 3.4
// (weight stashing, vertical sync).
#ifndef TROUPE_SCHEDULER_PIPELINES_PIPEDREAM_H_
#define TROUPE_SCHEDULER_PIPELINES_PIPEDREAM_H_

#include "absl/status/statusor.h"
#include "scheduler/pipelines/compute_order.h"

namespace troupe {

inline constexpr char kVerticalSync[] = "vertical_sync";

// InvalidArgument: several virtual stages.
absl::StatusOr<ComputeOrder> PipedreamOrder(const PipelineShape& shape);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PIPELINES_PIPEDREAM_H_
