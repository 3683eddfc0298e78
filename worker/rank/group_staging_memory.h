// What a group of ranks that share a GPU is staged through, of the rank's
// budget.
#ifndef TROUPE_WORKER_RANK_GROUP_STAGING_MEMORY_H_
#define TROUPE_WORKER_RANK_GROUP_STAGING_MEMORY_H_

#include "absl/status/statusor.h"
#include "proto/plan.pb.h"
#include "worker/collective/communicator_seat.h"
#include "worker/rank/tier_arenas.h"

namespace troupe {

// For group `group` of an assignment's plan, carried so; none where it is not
// staged. FailedPrecondition where the worker has no host tier.
absl::StatusOr<StagingMemory> GroupStagingMemory(const Plan& plan, int group,
                                                 const Group::Carrier& carrier,
                                                 const TierArenas& arenas);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_GROUP_STAGING_MEMORY_H_
