// Stages for devices of unlike memory. Units are cut into stages by speed;
// where a stage then needs more memory than its place has, and another place
// has more room, units move there: as many as fit, at the least time. How much
// that is follows from a plan that was made: what each unit keeps there, and
// how many micro-batches are in flight. What does not follow so, as workspace
// and gaps, is taken from the newest of a few plans.
#ifndef TROUPE_SCHEDULER_PLANNER_FIT_STAGES_H_
#define TROUPE_SCHEDULER_PLANNER_FIT_STAGES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "proto/cluster.pb.h"
#include "proto/plan.pb.h"
#include "scheduler/pipelines/compute_order.h"
#include "scheduler/planner/check_memory.h"

namespace troupe {

// By stage, on the rank where they are most: micro-batches that are in flight
// at a time.
std::vector<int> InFlight(const ComputeOrder& order, size_t stages);

// REQUIRES a plan that does not fit. The plan with other stages, which its job
// names, that does; nothing: there is none, or the job names its stages, or
// all places have equal memory, where stages stay as cost has cut them, or the
// schedule is asynchronous, where stages are part of what is trained. At most
// four plans are built, and errors are those of `build`.
absl::StatusOr<absl::optional<Plan>> FitStages(
    const Plan& lacks, const std::vector<WorkerDescription>& workers,
    const BuildPlan& build);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_FIT_STAGES_H_
