// How many ranks a job wants.
#ifndef TROUPE_PROTO_PLAN_RANKS_NEEDED_H_
#define TROUPE_PROTO_PLAN_RANKS_NEEDED_H_

#include "proto/job.pb.h"

namespace troupe {

// The product of its sizes, 1 to kRanksMax (mesh.h); needs no resolved job.
int RanksNeeded(const JobSpec& job);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_RANKS_NEEDED_H_
