// Adds SCATTER_GRADS, where units are dealt over data replicas: behind the last
// BACKWARD_WEIGHT that adds to the unit's gradients, tied ones included, of the
// step, or where gradients rest in slices of each micro-batch. All ranks of a
// group run the same program, so nothing is left to agree on; REDUCE_GRADS
// comes behind it and sums slices.
//
// Where servers keep units, it is PUSH, of the step; servers have the replicas'
// in their order.
#ifndef TROUPE_SCHEDULER_PASSES_SCATTER_GRADIENTS_H_
#define TROUPE_SCHEDULER_PASSES_SCATTER_GRADIENTS_H_

#include "scheduler/passes/draft.h"

namespace troupe {

void ScatterGradients(Draft& draft);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_SCATTER_GRADIENTS_H_
