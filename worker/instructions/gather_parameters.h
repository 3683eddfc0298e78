// GATHER_PARAMETERS: makes a unit's parameters whole from the slices that the
// ranks it is dealt over have: in place, where they are slices of a whole
// buffer, or into another.
#ifndef TROUPE_WORKER_INSTRUCTIONS_GATHER_PARAMETERS_H_
#define TROUPE_WORKER_INSTRUCTIONS_GATHER_PARAMETERS_H_

#include "absl/status/status.h"
#include "worker/instructions/call.h"

namespace troupe {

absl::Status RunGatherParameters(const Call& call);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_GATHER_PARAMETERS_H_
