// What the simulator makes of a cost: which of its seconds share the processor,
// which share links, and which pass whatever else runs.
#ifndef TROUPE_SCHEDULER_SIMULATE_EFFORT_H_
#define TROUPE_SCHEDULER_SIMULATE_EFFORT_H_

#include "scheduler/simulate/cost_model.h"
#include "scheduler/simulate/run_programs.h"

namespace troupe {

// `computes`: all that is neither a wait nor communication is done by the
// processor that ranks may share. Parts are never negative, and add up to the
// cost.
Effort EffortOf(const Cost& cost, bool computes);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SIMULATE_EFFORT_H_
