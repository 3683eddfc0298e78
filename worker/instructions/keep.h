// KEEP: copies what rests here of a unit's state, f32 parameters and moments,
// to its place in the rank's STATE_COPY, in the host's memory.
#ifndef TROUPE_WORKER_INSTRUCTIONS_KEEP_H_
#define TROUPE_WORKER_INSTRUCTIONS_KEEP_H_

#include "absl/status/status.h"
#include "worker/instructions/call.h"

namespace troupe {

absl::Status RunKeep(const Call& call);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_KEEP_H_
