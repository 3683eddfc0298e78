// Adds a STEP for each unit, first unit first. Each waits for its own gradients
// and for the scalars (clipping needs the global norm), not for other units'
// steps.
#ifndef TROUPE_SCHEDULER_PASSES_OPTIMIZER_STEPS_H_
#define TROUPE_SCHEDULER_PASSES_OPTIMIZER_STEPS_H_

#include "scheduler/passes/draft.h"

namespace troupe {

void OptimizerSteps(Draft& draft);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_OPTIMIZER_STEPS_H_
