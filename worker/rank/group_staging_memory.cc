#include "worker/rank/group_staging_memory.h"

#include "proto/base/status.h"
#include "proto/plan/group_staging.h"

namespace troupe {

absl::StatusOr<StagingMemory> GroupStagingMemory(const Plan& plan, int group,
                                                 const Group::Carrier& carrier,
                                                 const TierArenas& arenas) {
  if (!carrier.staged()) return StagingMemory();
  ASSIGN_OR_RETURN(Arena* const host, arenas.Find(HOST));
  return StagingMemory{
      .arena = host,
      .line_item = kGroupStagingItem,
      .bytes = LargestOperationBytes(plan, plan.roles(0), group)};
}

}  // namespace troupe
