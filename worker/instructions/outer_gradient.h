// OUTER_GRADIENT: by how much this island has changed the weights of a unit
// since the last exchange, in the form in which other islands get it
// (proto/plan/outer_change.h).
#ifndef TROUPE_WORKER_INSTRUCTIONS_OUTER_GRADIENT_H_
#define TROUPE_WORKER_INSTRUCTIONS_OUTER_GRADIENT_H_

#include "absl/status/status.h"
#include "worker/instructions/call.h"

namespace troupe {

absl::Status RunOuterGradient(const Call& call);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_OUTER_GRADIENT_H_
