// memory.recompute: auto. As little is made again as fits the budgets: on each
// rank that lacks memory, units stop keeping what saves most bytes for its
// time, one after the other, until the rank fits. What that costs is nominal,
// of each unit by itself, so a mode of all units may turn out to be quicker:
// then that is taken.
#ifndef TROUPE_SCHEDULER_PLANNER_FIT_RECOMPUTE_H_
#define TROUPE_SCHEDULER_PLANNER_FIT_RECOMPUTE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "proto/cluster.pb.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"
#include "scheduler/planner/check_memory.h"

namespace troupe {

// The job of `keeps_all`, a plan that does not fit, with its stages, and the
// units listed that make something again; or with mode `selective` or `full`,
// which may have other stages, where that is predicted to be quicker, or
// nothing that is listed is enough. `full` where that does not fit either.
// Errors as those of `build`.
absl::StatusOr<JobSpec> FitRecompute(
    const Plan& keeps_all, const std::vector<WorkerDescription>& workers,
    const BuildPlan& build);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_FIT_RECOMPUTE_H_
