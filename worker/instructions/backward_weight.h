// BACKWARD_WEIGHT: adds the micro-batch's gradients of a unit's parameters, and
// of those that it is tied to, to their flat buffers.
#ifndef TROUPE_WORKER_INSTRUCTIONS_BACKWARD_WEIGHT_H_
#define TROUPE_WORKER_INSTRUCTIONS_BACKWARD_WEIGHT_H_

#include "absl/status/status.h"
#include "worker/instructions/call.h"

namespace troupe {

absl::Status RunBackwardWeight(const Call& call);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_BACKWARD_WEIGHT_H_
