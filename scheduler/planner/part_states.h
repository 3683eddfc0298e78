// What a job says of the state of its units' parts, written into the parts:
// passes, predictions and workers read it there.
#ifndef TROUPE_SCHEDULER_PLANNER_PART_STATES_H_
#define TROUPE_SCHEDULER_PLANNER_PART_STATES_H_

#include "proto/plan.pb.h"
#include "proto/plan/unit_list.h"

namespace troupe {

// Sets types and tiers of each part, and its share along the axis of data
// replicas, which hold it alike. REQUIRES the plan's job, resolved, and mesh;
// and units that are cut.
void SetPartStates(const Plan& plan, UnitList& units);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_PART_STATES_H_
