// Whether a plan's ranks have the memory that they need.
#ifndef TROUPE_SCHEDULER_PLANNER_CHECK_MEMORY_H_
#define TROUPE_SCHEDULER_PLANNER_CHECK_MEMORY_H_

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
// their kernels' scratch, and what groups of ranks that share one are staged
// through. Errors as CheckBudgets'.
absl::Status CheckMemory(const Plan& plan,
                         const std::vector<WorkerDescription>& workers);
// By rank.
std::vector<absl::Status> CheckMemoryOfRanks(
    const Plan& plan, const std::vector<WorkerDescription>& workers);

// Bytes of the device that slots may take on a worker; nothing: it does not
// say.
absl::optional<int64_t> BytesForSlots(const Plan& plan,
                                      const WorkerDescription& worker);

// Bytes of the device that slots may take on each worker, as on the one that
// has least; nothing: no worker says. `plan`: with its units, at least.
absl::optional<int64_t> LeastOfDevice(
    const Plan& plan, const std::vector<WorkerDescription>& workers);

// The same by role, of the workers that have it; of all, where there are fewer
// than ranks.
std::vector<absl::optional<int64_t>> LeastOfDeviceByRole(
    const Plan& plan, const std::vector<WorkerDescription>& workers);

// Builds the plan of another job, to see whether that would fit. An error that
// is not of the job (may_go_on.h) ends the search.
using BuildPlan = std::function<absl::StatusOr<Plan>(const JobSpec& job)>;

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_CHECK_MEMORY_H_
