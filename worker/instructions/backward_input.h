// BACKWARD_INPUT: the gradient with respect to a unit's input, and what
// BACKWARD_WEIGHT needs besides.
#ifndef TROUPE_WORKER_INSTRUCTIONS_BACKWARD_INPUT_H_
#define TROUPE_WORKER_INSTRUCTIONS_BACKWARD_INPUT_H_

#include "absl/status/status.h"
#include "worker/instructions/call.h"

namespace troupe {

absl::Status RunBackwardInput(const Call& call);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_BACKWARD_INPUT_H_
