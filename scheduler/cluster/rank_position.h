// Where a rank is in its programs, from its RankProgress, and whether it has
// come to an instruction in which another rank meets it.
#ifndef TROUPE_SCHEDULER_CLUSTER_RANK_POSITION_H_
#define TROUPE_SCHEDULER_CLUSTER_RANK_POSITION_H_

#include <cstdint>
#include <string>
#include <utility>

#include "proto/plan/lanes.h"
#include "proto/program.pb.h"
#include "proto/worker.pb.h"

namespace troupe {

// A step, and the place of a program among those of the step: of two ranks the
// one that is further has the greater position.
using RankPosition = std::pair<int64_t, int>;
RankPosition PositionOf(const RankProgress& progress);

// The lane whose instruction all else waits for: the one that computes, where
// that runs, otherwise the one that it waits for, and so on. Null: no program
// runs. `lanes` are the plan's; what the worker says of others is passed over.
const LaneProgress* Blocking(const RankProgress& progress, const Lanes& lanes);

// A transfer or a collective that a rank is in.
struct MeetingPoint {
  const Instruction& instruction;
  int pipeline_place = 0;  // of that rank
  RankPosition position;
};
// Whether a rank is in its part of it, or past that.
bool HasComeTo(const MeetingPoint& point, const RankProgress& other);

// "FORWARD u6 m3", "REDUCE_GRADS u2-3".
std::string InstructionName(const Instruction& instruction);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_RANK_POSITION_H_
