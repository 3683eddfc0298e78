// OUTER_STEP: the outer optimizer's step on the mean change of all islands,
// after which this one goes on from the new weights
// (worker/model/outer_optimizer.h).
#ifndef TROUPE_WORKER_INSTRUCTIONS_OUTER_STEP_H_
#define TROUPE_WORKER_INSTRUCTIONS_OUTER_STEP_H_

#include "absl/status/status.h"
#include "worker/instructions/call.h"

namespace troupe {

absl::Status RunOuterStep(const Call& call);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_OUTER_STEP_H_
