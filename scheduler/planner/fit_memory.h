// memory: auto. What the job's `memory` and parallelism.zero leave open is
// chosen for the budgets: what is made again for backward, in which tier
// optimizer states, parameters, gradients and activations rest, and which of
// them are dealt over the ranks that hold them alike. Nothing where all fits as
// it is; else the quickest, as predicted, of what the search for remedies
// finds.
#ifndef TROUPE_SCHEDULER_PLANNER_FIT_MEMORY_H_
#define TROUPE_SCHEDULER_PLANNER_FIT_MEMORY_H_

#include <vector>

#include "absl/status/statusor.h"
#include "proto/cluster.pb.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"
#include "scheduler/planner/check_memory.h"
#include "scheduler/planner/remedies.h"

namespace troupe {

// Whether it leaves anything to be chosen. REQUIRES one that is resolved.
bool LeavesOpen(const MemorySpec& memory);

// The job where nothing of that is chosen: all that is open is as without
// `auto`. REQUIRES a job that is resolved.
JobSpec WithNothingChosen(const JobSpec& job);

// REQUIRES a job that is resolved, and `plan`, of it WithNothingChosen, which
// does not fit. What comes closest
// where nothing that may be chosen fits. Errors as those of `build`.
absl::StatusOr<Remedy> FitMemory(const JobSpec& asked, const Plan& plan,
                                 const std::vector<WorkerDescription>& workers,
                                 const BuildPlan& build);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_FIT_MEMORY_H_
