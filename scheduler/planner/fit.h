// A plan that needs more memory than there is: refused with the line item that
// overflows and what would help: how small a micro-batch, what to make again or
// deal over replicas and how much longer a step then takes, or over how many
// ranks units are to be cut.
#ifndef TROUPE_SCHEDULER_PLANNER_FIT_H_
#define TROUPE_SCHEDULER_PLANNER_FIT_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "proto/cluster.pb.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"

namespace troupe {

// Whether all that the plan's ranks need is there: their slots, and on GPUs
// their kernels' scratch. Errors as CheckBudgets'.
absl::Status CheckMemory(const Plan& plan,
                         const std::vector<WorkerDescription>& workers);
// By rank.
std::vector<absl::Status> CheckMemoryOfRanks(
    const Plan& plan, const std::vector<WorkerDescription>& workers);

// Bytes of the device that slots may take on each worker, as on the one that
// has least; nothing: no worker says. `plan`: with its units, at least.
absl::optional<int64_t> LeastOfDevice(
    const Plan& plan, const std::vector<WorkerDescription>& workers);

// Builds the plan of another job, to see whether that would fit. An error that
// is not of the job (may_go_on.h) ends the search.
using BuildPlan = std::function<absl::StatusOr<Plan>(const JobSpec& job)>;

// InvalidArgument, beginning with a field's path. What is advised is a job that
// can be planned: within all limits of ResolveJob.
absl::Status CheckFit(const Plan& plan,
                      const std::vector<WorkerDescription>& workers,
                      const BuildPlan& build);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_FIT_H_
