// Which ranks a role is of. Roles name places on some axes, most often one on
// "pipeline" alone, and each rank there has that role, wherever it is on the
// others: the size of a plan grows with its roles, not with its ranks.
#ifndef TROUPE_PROTO_PLAN_ROLES_H_
#define TROUPE_PROTO_PLAN_ROLES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/plan.pb.h"
#include "proto/plan/groups.h"

namespace troupe {

// FailedPrecondition: a place that is not in the mesh, places of an axis that do
// not ascend, a rank that has no role or several.
absl::Status CheckRoles(const Plan& plan);

// Index into plan.roles; -1: none. And that of every rank, in time for each of
// them.
int RoleIndexOf(const Plan& plan, int rank);
std::vector<int> RoleIndices(const Plan& plan);
// REQUIRES CheckRoles, or that it is the rank of an Assignment.
const Role& RoleOf(const Plan& plan, int rank);

// The first of its ranks: faults name it. And all of them, ascending.
int FirstRankOf(const Mesh& mesh, const Role& role);
std::vector<int> RanksOf(const Mesh& mesh, const Role& role);

// The first of its ranks in the box (groups.h); -1: none is.
int FirstRankIn(const Mesh& mesh, const Role& role, const Box& box);

// Whether each of its ranks is in a group of these. REQUIRES CheckGroup.
bool AreIn(const Mesh& mesh, const Role& role, const Group& group);

// Whether its ranks are at one place of the axis.
bool NamesPlaceOn(const Role& role, absl::string_view axis);

// Of the role, or null: what it has of a unit.
const Placement* FindPlacement(const Role& role, int unit);

// "pipeline 3"; "pipeline 0 data 1,3"; "all ranks".
std::string RoleText(const Role& role);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_ROLES_H_
