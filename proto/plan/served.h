// Parameter servers: which ranks keep a unit's state, and what moves between
// them and the replicas that compute with it (docs/parameter_servers.md).
//
// The servers of a unit have even slices of its trained elements, as ranks have
// over which a unit is dealt (at_rest.h). PUSH and PULL are all-to-alls between
// replicas and servers, in which a block is a server's slice.
#ifndef TROUPE_PROTO_PLAN_SERVED_H_
#define TROUPE_PROTO_PLAN_SERVED_H_

#include <cstdint>
#include <vector>

#include "proto/plan.pb.h"
#include "proto/plan/at_rest.h"
#include "proto/plan/layout.h"
#include "proto/plan/mesh.h"

namespace troupe {

// Where they are, behind the replicas.
inline constexpr const char* kServerAxis = kReplicaAxis;

// Whether the job has servers of their own, and whether a rank is one: it
// computes no layers, and is behind the replicas on the axis "data".
inline bool HasServers(const Plan& plan) {
  return plan.job().parallelism().servers() > 0;
}
bool IsServer(const Plan& plan, int rank);

// Whether the rank has the scalars of all steps: where each step is one
// replica's, servers have. And the first rank that has.
bool KnowsScalars(const Plan& plan, int rank);
int FirstThatKnowsScalars(const Plan& plan);

// Whether ranks with this placement serve the unit.
inline bool Serves(const Placement& placement) {
  return placement.has_served() && IsDealt(placement);
}

// A placement that is served, as its servers have it. REQUIRES `served`.
Placement OnServers(Placement placement);

// What a rank keeps of the unit: a server its slice of all that is trained, a
// replica nothing.
Range ServedSlice(const Plan& plan, const Placement& placement, int rank);

// One of Placement.served's group. A replica's slice is empty.
struct ServedMember {
  bool is_server = false;
  Range slice;
};
// In the order of the group, of the rank's instance of it. REQUIRES `served`,
// and its groups checked.
std::vector<ServedMember> ServedMembers(const Plan& plan,
                                        const Placement& placement, int rank);

// Where a server sums what replicas push: a block for each of them, which are
// PushedStride elements apart, whole lines.
int ReplicasServed(const Plan& plan, const Placement& placement);
int64_t PushedStride(const Plan& plan, const Placement& placement);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_SERVED_H_
