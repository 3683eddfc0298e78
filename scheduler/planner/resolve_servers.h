// Parameter servers: the section `servers` and parallelism.servers
// (docs/parameter_servers.md).
#ifndef TROUPE_SCHEDULER_PLANNER_RESOLVE_SERVERS_H_
#define TROUPE_SCHEDULER_PLANNER_RESOLVE_SERVERS_H_

#include <vector>

#include "absl/status/status.h"
#include "proto/cluster.pb.h"
#include "proto/job.pb.h"

namespace troupe {

// Sets the section where the job has servers, and what it implies of
// parallelism.zero: servers of their own leave nothing to deal over replicas,
// and replicas that serve each other are zero: 1. Before parallelism is
// resolved. InvalidArgument, beginning with a field's path.
absl::Status ResolveServers(JobSpec& job);

// With what servers of their own do not go. REQUIRES all else resolved.
absl::Status CheckServersFit(const JobSpec& job);
// On which workers they do not. REQUIRES a job that is resolved.
absl::Status CheckTurnsOn(const JobSpec& job,
                          const std::vector<WorkerDescription>& workers);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_RESOLVE_SERVERS_H_
