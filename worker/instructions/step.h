// STEP: one optimizer update of a unit, its gradients clipped by the global
// norm that SCALARS holds, and left zero but where they are only read. Where
// the plan has MASTER_WEIGHTS, those are updated, and PARAMETERS become them
// rounded. Where a unit has several versions of PARAMETERS, the newest stays as
// it is and another one becomes what follows from it.
//
// Of a scaled loss (worker/rank/loss_scale.h) the gradients are divided by the
// scale first; where the norm says that one of them overflowed, on any rank,
// the unit stays as it is, and its gradients become zero as in any other step.
#ifndef TROUPE_WORKER_INSTRUCTIONS_STEP_H_
#define TROUPE_WORKER_INSTRUCTIONS_STEP_H_

#include "absl/status/status.h"
#include "worker/instructions/call.h"

namespace troupe {

absl::Status RunStep(const Call& call);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_STEP_H_
