// FORWARD: one unit on one micro-batch. The head adds the loss to SCALARS; in a
// VALIDATE program no dropout is drawn.
#ifndef TROUPE_WORKER_INSTRUCTIONS_FORWARD_H_
#define TROUPE_WORKER_INSTRUCTIONS_FORWARD_H_

#include "absl/status/status.h"
#include "worker/instructions/call.h"

namespace troupe {

absl::Status RunForward(const Call& call);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_FORWARD_H_
