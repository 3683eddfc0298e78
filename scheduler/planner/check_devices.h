// Whether workers may do one job together.
#ifndef TROUPE_SCHEDULER_PLANNER_CHECK_DEVICES_H_
#define TROUPE_SCHEDULER_PLANNER_CHECK_DEVICES_H_

#include <vector>

#include "absl/status/status.h"
#include "proto/cluster.pb.h"
#include "proto/job.pb.h"

namespace troupe {

// InvalidArgument where some compute on GPUs and others on CPUs, with their
// names and the way out: all ranks of a step wait for the slowest, so its GPUs
// would idle. workers[r] is to fill rank r.
absl::Status CheckDevices(const std::vector<WorkerDescription>& workers);

// InvalidArgument, with the field and the way out, where the model's heads are
// wider than the kernels take on the GPU of one of the workers. REQUIRES a
// resolved job.
absl::Status CheckHeads(const JobSpec& job,
                        const std::vector<WorkerDescription>& workers);

// Whether all of them have the tier, or say nothing of tiers.
bool HaveTier(const std::vector<WorkerDescription>& workers, Tier tier);

// InvalidArgument: something is to rest in the nvme tier, which a worker lacks.
absl::Status CheckNvme(const JobSpec& job,
                       const std::vector<WorkerDescription>& workers);

// All of these, and where replicas may take turns (resolve_servers.h).
absl::Status CheckWorkersFit(const JobSpec& job,
                             const std::vector<WorkerDescription>& workers);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_CHECK_DEVICES_H_
