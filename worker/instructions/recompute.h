// RECOMPUTE: of a unit's values those that its backward passes read and that
// were not kept.
#ifndef TROUPE_WORKER_INSTRUCTIONS_RECOMPUTE_H_
#define TROUPE_WORKER_INSTRUCTIONS_RECOMPUTE_H_

#include "absl/status/status.h"
#include "worker/instructions/call.h"

namespace troupe {

absl::Status RunRecompute(const Call& call);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_RECOMPUTE_H_
