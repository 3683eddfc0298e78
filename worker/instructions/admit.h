// ADMIT: a server hands its slices of all parameters to replicas that claim a
// step, one after the other, until one delivers; then it takes its slices of
// that one's gradients, and what it has summed of its step.
#ifndef TROUPE_WORKER_INSTRUCTIONS_ADMIT_H_
#define TROUPE_WORKER_INSTRUCTIONS_ADMIT_H_

#include "absl/status/status.h"
#include "worker/instructions/call.h"

namespace troupe {

absl::Status RunAdmit(const Call& call);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_ADMIT_H_
