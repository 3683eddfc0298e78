// memory.recompute: auto. As little is made again as fits the budgets: on each
// rank that lacks memory, units stop keeping what saves most bytes for its
// time, one after the other, until the rank fits.
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
// units listed that make something again. Where that is not enough, that job
// with mode `full`, which may fit with other stages or does not fit at all.
// Errors as those of `build`.
absl::StatusOr<JobSpec> FitRecompute(
    const Plan& keeps_all, const std::vector<WorkerDescription>& workers,
    const BuildPlan& build);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_FIT_RECOMPUTE_H_
