// MIRROR: hands the rank's STATE_COPY to the rank that holds it beside its own,
// and receives the copy that this one holds (proto/plan/copies.h).
#ifndef TROUPE_WORKER_INSTRUCTIONS_MIRROR_H_
#define TROUPE_WORKER_INSTRUCTIONS_MIRROR_H_

#include "absl/status/status.h"
#include "worker/instructions/call.h"

namespace troupe {

absl::Status RunMirror(const Call& call);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_MIRROR_H_
