// The part of resolving a job that is about what ranks do for some of its units
// only (proto/plan/strategies.h). Used by resolve_parallelism.cc.
#ifndef TROUPE_SCHEDULER_PLANNER_RESOLVE_STRATEGIES_H_
#define TROUPE_SCHEDULER_PLANNER_RESOLVE_STRATEGIES_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace troupe {

// Fills in the defaults of each strategy and checks its fields by themselves;
// where the job itself shares stages among no ranks, it does what the first one
// says. InvalidArgument "parallelism.strategies[i]...: ...".
absl::Status ResolveStrategies(ParallelismSpec& parallelism);

// Whether they fit the job and one another: its stages, and the factors of its
// ranks. REQUIRES that all else of parallelism is resolved.
absl::Status CheckStrategies(const ParallelismSpec& parallelism);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_RESOLVE_STRATEGIES_H_
