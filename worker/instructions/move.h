// FETCH and EVICT: copy a value FROM a tier TO its neighbour, the first to
// where it is used, the second to where it rests.
#ifndef TROUPE_WORKER_INSTRUCTIONS_MOVE_H_
#define TROUPE_WORKER_INSTRUCTIONS_MOVE_H_

#include "absl/status/status.h"
#include "worker/instructions/call.h"

namespace troupe {

absl::Status RunMove(const Call& call);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_MOVE_H_
