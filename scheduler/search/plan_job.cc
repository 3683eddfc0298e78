#include "scheduler/search/plan_job.h"

#include <utility>

#include "proto/base/status.h"
#include "proto/plan/ranks_needed.h"
#include "scheduler/search/space.h"

namespace troupe {

absl::StatusOr<PlannedJob> PlanJob(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    const MayGoOn& may_go_on, const SearchProgress& progress) {
  PlannedJob result = {.job = job};
  if (!LeavesParallelismOpen(job)) {
    ASSIGN_OR_RETURN(result.planned,
                     CompilePlanAndStep(job, workers, may_go_on));
    return result;
  }
  ASSIGN_OR_RETURN(ChosenWays choice,
                   ChooseParallelism(job, workers, may_go_on, progress));
  absl::Status refused;
  // Of shorter steps the memory may have been less.
  for (const JobSpec& chosen : choice.jobs) {
    absl::StatusOr<PlanAndStep> planned =
        CompilePlanAndStep(chosen, workers, may_go_on);
    if (planned.ok()) {
      result.planned = *std::move(planned);
      result.job = WithChoice(job, result.planned.plan.job());
      result.explanation = std::move(choice.explanation);
      return result;
    }
    if (!absl::IsInvalidArgument(planned.status())) return planned.status();
    if (refused.ok()) refused = planned.status();
    choice.explanation.mutable_ways()->DeleteSubrange(0, 1);
  }
  return Annotate(refused, "parallelism: auto chose what cannot be planned");
}

}  // namespace troupe
