// Adds REDUCE_GRADS, in buckets: consecutive units in backward order, as many
// as stay within parallelism.bucket_megabytes (a unit that is larger is a
// bucket of its own, and so is the slice of one that is dealt). A bucket stands
// right behind the last BACKWARD_WEIGHT that adds to any of its gradients, tied
// ones included, or the SCATTER_GRADS behind that, so that it travels on the
// COLLECTIVE lane while backward goes on. Units with one replica have nothing
// to sum.
//
// Ranks of a group may be ready for its buckets in different orders, and be
// members of several groups. So all buckets of all groups stand in one order,
// by when the last of their ranks is ready, as a share of its program; each
// rank has its part of that. Those that other stages are in stand behind all
// SCATTER_GRADS, and where gradients move between tiers behind all passes: for
// these, passes wait that other stages wait for.
#ifndef TROUPE_SCHEDULER_PASSES_REDUCE_GRADIENTS_H_
#define TROUPE_SCHEDULER_PASSES_REDUCE_GRADIENTS_H_

#include "scheduler/passes/draft.h"

namespace troupe {

void ReduceGradients(Draft& draft);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_REDUCE_GRADIENTS_H_
