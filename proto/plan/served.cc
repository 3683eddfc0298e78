#include "proto/plan/served.h"

#include "proto/plan/at_rest.h"
#include "proto/plan/groups.h"
#include "proto/plan/mesh.h"

namespace troupe {

Placement OnServers(Placement placement) {
  for (Placement::Part& part : *placement.mutable_parts()) {
    part.set_dealt(placement.served().servers());
  }
  return placement;
}

bool IsServer(const Plan& plan, int rank) {
  return HasServers(plan) && CoordinateOn(plan.mesh(), kReplicaAxis, rank) >=
                                 plan.job().parallelism().data();
}

bool KnowsScalars(const Plan& plan, int rank) {
  return !plan.derived().takes_turns() || IsServer(plan, rank);
}

int FirstThatKnowsScalars(const Plan& plan) {
  int rank = 0;
  while (!KnowsScalars(plan, rank)) ++rank;
  return rank;
}

Range ServedSlice(const Plan& plan, const Placement& placement, int rank) {
  // Its parts are one stretch: all are trained, and dealt over the servers.
  return AtRestWith(plan, placement, /*part=*/0, rank).rests;
}

std::vector<ServedMember> ServedMembers(const Plan& plan,
                                        const Placement& placement, int rank) {
  const Group& group = plan.groups(placement.served().group());
  const Group& servers = plan.groups(placement.served().servers());
  // Asked for each push and pull: once for all of the servers.
  const Stretch all = StretchWith(plan, OnServers(placement), /*part=*/0);
  std::vector<ServedMember> members;
  for (const int member : MembersOf(plan.mesh(), group, rank)) {
    ServedMember& served = members.emplace_back();
    served.is_server = GroupNumber(plan.mesh(), servers, member) >= 0;
    if (!served.is_server) continue;
    served.slice = RestsOf(plan, all, member);
  }
  return members;
}

int ReplicasServed(const Plan& plan, const Placement& placement) {
  return GroupSize(plan.mesh(), plan.groups(placement.served().group())) -
         GroupSize(plan.mesh(), plan.groups(placement.served().servers()));
}

int64_t PushedStride(const Plan& plan, const Placement& placement) {
  // Its parts are one stretch, whose slices are even.
  const Stretch all = StretchWith(plan, OnServers(placement), /*part=*/0);
  const Group& servers = plan.groups(placement.served().servers());
  const int64_t largest =
      EvenLines(all.all.size(),
                {.index = 0, .count = GroupSize(plan.mesh(), servers)})
          .size();
  return (largest + kLineElements - 1) / kLineElements * kLineElements;
}

}  // namespace troupe
