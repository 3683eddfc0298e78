// Adds a STEP for each unit, first unit first. Each waits for its own gradients
// and for the scalars (clipping needs the global norm), not for other units'
// steps.
//
// Where the optimizer's states rest below the device it runs on the host's
// cores. Then, without clipping, a unit's STEP stands behind the last
// instruction that uses its gradients or parameters, last unit first, and runs
// while the device goes on backward (ZeRO-Offload, arXiv 2101.06840).
#ifndef TROUPE_SCHEDULER_PASSES_OPTIMIZER_STEPS_H_
#define TROUPE_SCHEDULER_PASSES_OPTIMIZER_STEPS_H_

#include "scheduler/passes/draft.h"

namespace troupe {

void OptimizerSteps(Draft& draft);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_OPTIMIZER_STEPS_H_
