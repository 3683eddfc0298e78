// PULL: a unit's servers send their slices of its parameters to all replicas,
// which have all of it then (proto/plan/served.h).
#ifndef TROUPE_WORKER_INSTRUCTIONS_PULL_H_
#define TROUPE_WORKER_INSTRUCTIONS_PULL_H_

#include "absl/status/status.h"
#include "worker/instructions/call.h"

namespace troupe {

absl::Status RunPull(const Call& call);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_PULL_H_
