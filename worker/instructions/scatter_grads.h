// SCATTER_GRADS: sums a unit's gradients over the ranks that it is dealt over,
// each rank the slice that it has (proto/plan/at_rest.h). Where the slice is
// part of the same buffer, what lies around it is left zero, as the next step's
// gradients are added to it; where it is another, the sum is added to that.
#ifndef TROUPE_WORKER_INSTRUCTIONS_SCATTER_GRADS_H_
#define TROUPE_WORKER_INSTRUCTIONS_SCATTER_GRADS_H_

#include "absl/status/status.h"
#include "worker/instructions/call.h"

namespace troupe {

absl::Status RunScatterGrads(const Call& call);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_SCATTER_GRADS_H_
