// Memory of the host through which the groups of ranks that share a GPU are
// carried (Group.Carrier.staged; worker/collective/staged): for each staged
// group, the bytes of its largest operation, in line item `group_staging` of
// the host tier. The planner counts them, and the worker takes them from its
// budget when the rank joins the group.
#ifndef TROUPE_PROTO_PLAN_GROUP_STAGING_H_
#define TROUPE_PROTO_PLAN_GROUP_STAGING_H_

#include <cstdint>
#include <map>
#include <vector>

#include "proto/plan.pb.h"

namespace troupe {

inline constexpr char kGroupStagingItem[] = "group_staging";

// Where what is received begins, behind what is sent, in an operation that has
// both at a time: where any type may.
inline constexpr int64_t kStagedAlignment = 64;

// What the largest operation of any rank of the role has in the group, in any
// program; 0: none. Whether the group is staged is not asked.
int64_t LargestOperationBytes(const Plan& plan, const Role& role, int group);

// The line item.
MemoryItem GroupStagingItem(int64_t bytes);

class GroupStaging {
 public:
  using Groups = google::protobuf::RepeatedPtrField<Group>;

  // Borrows both. `groups`: those of the plan, with carriers.
  GroupStaging(const Plan& plan, const Groups& groups);

  // Of all staged groups in which the rank, of this role, meets others; 0: none
  // is. Not thread-safe.
  int64_t BytesOf(const Role& role, int rank);

 private:
  struct Use {
    int group = 0;
    int64_t bytes = 0;
  };
  const std::vector<Use>& UsesOf(const Role& role);

  const Plan& plan_;
  const Groups& groups_;
  std::vector<int> staged_;  // groups of which any is
  std::map<const Role*, std::vector<Use>> uses_;
};

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_GROUP_STAGING_H_
