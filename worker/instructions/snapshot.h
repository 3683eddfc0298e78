// SNAPSHOT: adds the parameters of a unit's part, the f32 master ones where
// there are such, and optimizer state to what the rank is to write, of the
// rank's slice where others have the same, wherever it rests. Where the plan
// gives it a SNAPSHOT_COPY, the state is copied there first and the next step
// may change the original; else it is borrowed, and must be written before the
// next step.
#ifndef TROUPE_WORKER_INSTRUCTIONS_SNAPSHOT_H_
#define TROUPE_WORKER_INSTRUCTIONS_SNAPSHOT_H_

#include "absl/status/status.h"
#include "worker/instructions/call.h"

namespace troupe {

absl::Status RunSnapshot(const Call& call);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_SNAPSHOT_H_
