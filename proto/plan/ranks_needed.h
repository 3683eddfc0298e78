// How many ranks a job wants, and whether that is a number that can be planned.
#ifndef TROUPE_PROTO_PLAN_RANKS_NEEDED_H_
#define TROUPE_PROTO_PLAN_RANKS_NEEDED_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace troupe {

// Whether the planner is to choose how the job is divided, of the workers that
// there are (docs/auto.md): parallelism.mode is given. RanksNeeded then counts
// the sizes that the job says.
bool LeavesParallelismOpen(const JobSpec& job);

// The product of its sizes, 1 to kRanksMax (plan_limits.h); needs no resolved
// job.
int RanksNeeded(const JobSpec& job);
int RanksNeeded(const ParallelismSpec& parallelism);

// InvalidArgument, beginning with the field's path: a size that is below 1 or
// past its limit, or more than kRanksMax ranks in all. Sizes that are not given
// are 1. Takes no time, so that clients may ask before they describe a worker
// for each rank.
absl::Status CheckSizes(const ParallelismSpec& parallelism);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_RANKS_NEEDED_H_
