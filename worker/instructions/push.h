// PUSH: replicas send a unit's gradients to its servers, to each its slice, and
// a server sums what it gets: the first replica's, and the others' in their
// order (proto/plan/served.h).
#ifndef TROUPE_WORKER_INSTRUCTIONS_PUSH_H_
#define TROUPE_WORKER_INSTRUCTIONS_PUSH_H_

#include "absl/status/status.h"
#include "worker/instructions/call.h"

namespace troupe {

absl::Status RunPush(const Call& call);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_PUSH_H_
