// How far ahead of their use gathers of whole units run (ZeRO 3, 3D): what is
// quickest of what devices have room for and memory.unsharded_bytes allows, the
// same share of each role's room. Programs are the same, so plans differ in
// their slots only, and each is a trial of the last passes.
//
// A plan has them run one step of work ahead, or, where a role has no room for
// that, while units are used. From there they run farther where a step is
// predicted to be shorter so, as with a large head behind small blocks.
#ifndef TROUPE_SCHEDULER_PLANNER_GATHER_AHEAD_H_
#define TROUPE_SCHEDULER_PLANNER_GATHER_AHEAD_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/base/may_go_on.h"
#include "proto/cluster.pb.h"
#include "proto/plan.pb.h"
#include "scheduler/passes/draft.h"

namespace troupe {

// A step that is shorter by less is not worth other settings.
inline constexpr double kGainOfSettings = 0.01;

struct GatherOptions {
  // Where they are fewer than ranks nothing is predicted, and gathers run one
  // step of work ahead, or while units are used.
  const std::vector<WorkerDescription>& workers;
  const MayGoOn& may_go_on;
  // Of ways that are nearly as quick, the one that takes fewest bytes, as far
  // as a few trials find it; and the prediction says what was chosen. Else
  // farther ones take what there is.
  bool fewest_bytes = false;
};

// The plan of a draft whose programs are there (ProgramPasses). Where no way
// fits, the one that takes least.
absl::StatusOr<Plan> GatherAhead(Draft programs, const GatherOptions& options);

// With gathers one step of work ahead, whether there is room for it or not.
Plan GatherOneAhead(Draft programs);
// As far ahead as is of use and memory.unsharded_bytes allows, whether there is
// room for it or not.
Plan GatherFarthest(Draft programs, const GatherOptions& options);

// Whether a step would be shorter by kGainOfSettings or more if devices had
// more memory for whole units than they have beside `plan`, which GatherAhead
// made of this draft. False where it does not fit.
absl::StatusOr<bool> GathersLackRoom(Draft programs, const Plan& plan,
                                     const GatherOptions& options);

// Whether a role has units that are gathered for each use.
bool GathersUnits(const Plan& plan);

// "up to 3 units ahead of use, in 12.1 MiB"; empty: there are no such gathers.
std::string GathersText(const Plan& plan);

// Of whole units, how many are there or on their way at most while another one
// is used, as far as slots allow it.
int UnitsAhead(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_GATHER_AHEAD_H_
