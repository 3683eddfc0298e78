// Plans a job as its user submits it: where it leaves parallelism open, what is
// best for these workers is chosen first (search.h).
#ifndef TROUPE_SCHEDULER_SEARCH_PLAN_JOB_H_
#define TROUPE_SCHEDULER_SEARCH_PLAN_JOB_H_

#include <vector>

#include "absl/status/statusor.h"
#include "proto/base/may_go_on.h"
#include "proto/cluster.pb.h"
#include "proto/explanation.pb.h"
#include "proto/job.pb.h"
#include "scheduler/planner/planner.h"
#include "scheduler/search/search.h"

namespace troupe {

struct PlannedJob {
  PlanAndStep planned;
  // The job as its user wrote it, with what was chosen: planned again for the
  // same workers it is the same plan.
  JobSpec job;
  Explanation explanation;  // of the choice; empty: nothing was open
};

// workers[r] is to fill rank r; of an open job the last ones may be left over.
// Errors as those of CompilePlan and ChooseParallelism.
absl::StatusOr<PlannedJob> PlanJob(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    const MayGoOn& may_go_on = {}, const SearchProgress& progress = nullptr);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SEARCH_PLAN_JOB_H_
