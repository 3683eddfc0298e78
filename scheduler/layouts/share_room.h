// Room of experts is given out over whole sequences. Where axes of the mesh cut
// these, a rank needs to know how often the tokens of each rank chose each
// expert: counts are gathered, and no token moves.
//
//   ROUTER_LOAD   how often this rank's tokens chose each expert, by choice
//   EXCHANGE      all-gather
//   CAPACITY
#ifndef TROUPE_SCHEDULER_LAYOUTS_SHARE_ROOM_H_
#define TROUPE_SCHEDULER_LAYOUTS_SHARE_ROOM_H_

#include <vector>

#include "proto/unit.pb.h"
#include "scheduler/layouts/axis_rules.h"

namespace troupe {

// Of a table that all these axes have cut. REQUIRES that none cuts sequences in
// zigzag order: each rank has consecutive positions.
void ShareRoom(const std::vector<AxisRules>& axes, UnitTable& table);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_LAYOUTS_SHARE_ROOM_H_
