// What the handmade zero-bubble schedules have in common: 1F1B whose backward
// pass is split. Gradients of activations run as soon as they can, since other
// ranks wait for them; gradients of weights, for which nobody waits, fill the
// gaps.
//
// With depth d, rank r runs d (P - 1 - r) micro-batches forward to begin with,
// then forward and backward-input in turns; weights follow d r micro-batches
// behind. So all ranks keep as many micro-batches: d (P - 1) + 1.
#ifndef TROUPE_SCHEDULER_PIPELINES_ZERO_BUBBLE_H_
#define TROUPE_SCHEDULER_PIPELINES_ZERO_BUBBLE_H_

#include "scheduler/pipelines/compute_order.h"

namespace troupe {

// REQUIRES one stage a rank.
ComputeOrder ZeroBubbleOrder(const PipelineShape& shape, int depth);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PIPELINES_ZERO_BUBBLE_H_
