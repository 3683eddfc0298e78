// DELIVER: a replica says that it has computed its step, and pushes the
// gradients of all units to their servers when these come to it.
#ifndef TROUPE_WORKER_INSTRUCTIONS_DELIVER_H_
#define TROUPE_WORKER_INSTRUCTIONS_DELIVER_H_

#include "absl/status/status.h"
#include "worker/instructions/call.h"

namespace troupe {

absl::Status RunDeliver(const Call& call);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_DELIVER_H_
