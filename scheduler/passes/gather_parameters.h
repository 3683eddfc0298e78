// Adds GATHER_PARAMETERS, where units are dealt over data replicas: in front of
// the first pass of a program that computes with the unit, and where parameters
// rest in slices and are given back, again in front of each pass whose
// predecessor used other units. They have a lane of their own, on which those
// that are to come run ahead as far as their slots are free (assign_slots.h).
//
// Where servers keep units, it is PULL, in front of the first pass; servers
// have the replicas' in their order.
#ifndef TROUPE_SCHEDULER_PASSES_GATHER_PARAMETERS_H_
#define TROUPE_SCHEDULER_PASSES_GATHER_PARAMETERS_H_

#include "scheduler/passes/draft.h"

namespace troupe {

void GatherParameters(Draft& draft);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_GATHER_PARAMETERS_H_
