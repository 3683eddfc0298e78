// From how exchanges of some sizes go to the ways of all sizes of a group.
#ifndef TROUPE_SCHEDULER_PLANNER_WRITE_WAYS_H_
#define TROUPE_SCHEDULER_PLANNER_WRITE_WAYS_H_

#include <cstdint>
#include <vector>

#include "proto/plan.pb.h"

namespace troupe {

struct ChosenWay {
  int64_t bytes = 0;  // of the exchange
  Group::Way way;     // over the group's levels; no steps: flat
};

// Writes Group.ways, none with steps before, and leaves out the levels that
// none of them uses. Of sizes in between, those that are nearer take the way.
// REQUIRES them by collective and bytes, ascending; of equal ones the last
// holds.
void WriteWays(const std::vector<ChosenWay>& chosen, Group& group);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_WRITE_WAYS_H_
