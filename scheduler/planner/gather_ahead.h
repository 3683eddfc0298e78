// How far ahead of their use gathers of whole units run (ZeRO), where the job
// leaves that open: memory.unsharded_bytes. A plan has them run one step of
// work ahead, for which it has room. From there,
//
// * where a plan does not fit so, it is built with gathers that run as far ahead
//   as the device has room for, or not at all, if that fits;
// * where a step is predicted to be shorter if they run farther, as with a
//   large head behind small blocks, as far as the budget of the device allows,
//   they do, in the fewest bytes that a few trials find for most of the gain.
#ifndef TROUPE_SCHEDULER_PLANNER_GATHER_AHEAD_H_
#define TROUPE_SCHEDULER_PLANNER_GATHER_AHEAD_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/cluster.pb.h"
#include "proto/plan.pb.h"
#include "scheduler/planner/check_memory.h"

namespace troupe {

// The plan, or the one that has gathers run less far ahead where only that
// fits. Workers are those that there are, maybe fewer than ranks.
absl::StatusOr<Plan> GatherNearer(Plan plan,
                                  const std::vector<WorkerDescription>& workers,
                                  const BuildPlan& build);

// The plan, or the one that has them run farther; its prediction says how far
// they do. REQUIRES a plan that fits, of a job that leaves it open, and a
// worker for each rank.
absl::StatusOr<Plan> GatherFarther(
    Plan plan, const std::vector<WorkerDescription>& workers,
    const BuildPlan& build);

// "up to 3 units ahead of use, in 12.1 MiB"; empty: there are no such gathers.
std::string GathersText(const Plan& plan);

// Of whole units, how many are there or on their way at most while another one
// is used, as far as slots allow it.
int UnitsAhead(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_GATHER_AHEAD_H_
