// From a job to a checked plan: resolve, lay out the mesh, place the units,
// order the computation (scheduler/pipelines), add the rest (scheduler/passes),
// check, simulate, and compare with the memory that there is. Pure: the same
// job and workers give the same plan, byte for byte.
#ifndef TROUPE_SCHEDULER_PLANNER_PLANNER_H_
#define TROUPE_SCHEDULER_PLANNER_PLANNER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "proto/base/may_go_on.h"
#include "proto/cluster.pb.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"
#include "proto/plan/ranks_needed.h"
#include "proto/timeline.pb.h"

namespace troupe {

// workers[r] is to fill rank r; workers past the last rank are ignored. What
// planning takes is bounded before anything is built (plan_size.h).
//
// InvalidArgument: the job is wrong or its plan too long, or rank r needs more
// memory than workers[r] has, or some workers have GPUs and others have not
// (IsForWorkers tells these apart); begins with the path of a field.
// FailedPrecondition: too few workers. And what `may_go_on` says.
absl::StatusOr<Plan> CompilePlan(const JobSpec& job,
                                 const std::vector<WorkerDescription>& workers,
                                 const MayGoOn& may_go_on = {});

// The same with the timeline of the predicted step, of the ranks that are
// traced (proto/plan/traced_ranks.h).
struct PlanAndStep {
  Plan plan;
  Timeline step;
};
absl::StatusOr<PlanAndStep> CompilePlanAndStep(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    const MayGoOn& may_go_on = {});

// The plan of a job that goes on after `before`, with exchanges that go as they
// did there (ChooseWays), and the step predicted anew; nothing: the plan does
// so already. `planned` is CompilePlan's for these workers.
absl::optional<PlanAndStep> WithWaysOf(
    const Plan& before, const std::vector<WorkerDescription>& workers,
    const Plan& planned);

// How far ahead gathers run (gather_ahead.h): as of a plan that runs, in the
// fewest bytes; or, in less time, with all the room that makes a step shorter,
// for a plan that is one of many to be compared, and is bounded as such.
enum class GatherRoom { kFewest, kAll };

// The same of a job that may need more memory than there is: its plan and
// prediction as if it were there. CheckMemory says whether it is. It has no
// fingerprint. Absent: as long as plans may be, or those that are compared.
absl::StatusOr<Plan> TryPlan(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    GatherRoom gather_room, const MayGoOn& may_go_on = {},
    absl::optional<int64_t> instructions_max = absl::nullopt);

// What goes to the worker of this rank: the plan with its role and its part of
// the prediction only.
Plan AssignmentPlan(const Plan& plan, int rank);

// Of all of the plan but its prediction, what carries its groups, why some are
// flat, and the fingerprint itself: equal for equal plans, on any machine.
// Plans whose sums go other ways (Group.ways) are not equal: they have other
// bits. 16 hexadecimal digits.
std::string PlanFingerprint(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_PLANNER_H_
