// STEP: one optimizer update of a unit, its gradients clipped by the global
// norm that SCALARS holds, and left zero but where they are only read. Where
// the plan has MASTER_WEIGHTS, those are updated, and PARAMETERS become them
// rounded to bf16. Where a unit has several versions of PARAMETERS, the newest
// stays as it is and another one becomes what follows from it.
#ifndef TROUPE_WORKER_INSTRUCTIONS_STEP_H_
#define TROUPE_WORKER_INSTRUCTIONS_STEP_H_

#include "absl/status/status.h"
#include "worker/instructions/call.h"

namespace troupe {

absl::Status RunStep(const Call& call);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_STEP_H_
