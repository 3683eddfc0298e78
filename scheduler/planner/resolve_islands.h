// parallelism.islands and the section `islands`: ranks that train by themselves
// and exchange what they have learned now and then (docs/islands.md).
#ifndef TROUPE_SCHEDULER_PLANNER_RESOLVE_ISLANDS_H_
#define TROUPE_SCHEDULER_PLANNER_RESOLVE_ISLANDS_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace troupe {

// Sets all fields of `islands`, where the job has any, and optimizer.outer.
absl::Status ResolveIslands(JobSpec& job);

// What does not go with them. REQUIRES all else resolved.
absl::Status CheckIslandsFit(const JobSpec& job);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_RESOLVE_ISLANDS_H_
