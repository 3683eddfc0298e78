// The table of the lanes that plans have: the one place that lists them. A row
// is all that a lane needs; passes put instructions on it
// (docs/how_to_add/lane.md).
#ifndef TROUPE_SCHEDULER_PASSES_LANES_H_
#define TROUPE_SCHEDULER_PASSES_LANES_H_

#include "absl/strings/string_view.h"
#include "proto/job.pb.h"
#include "proto/plan/lanes.h"

namespace troupe {

// In the order in which pictures show them.
Lanes AllLanes();
// The same, but for those at the end that such a job has no use for.
Lanes LanesOf(const ParallelismSpec& parallelism);

// Index of the lane of this name in AllLanes, and so in every plan; CHECKs that
// there is one. For instructions that do not run on their kind's usual lane.
int LaneNamed(absl::string_view name);
// Index of the lane for moves between these neighbouring tiers.
int LaneOfMove(Tier from, Tier to);
// Index of that usual lane; CHECKs that there is one.
int LaneFor(Instruction::Kind kind);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_LANES_H_
