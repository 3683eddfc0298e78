#include "proto/plan/roles.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/groups.h"
#include "proto/plan/mesh.h"

namespace troupe {
namespace {

const Role::Place* PlaceOn(const Role& role, absl::string_view axis) {
  for (const Role::Place& at : role.at()) {
    if (at.axis() == axis) return &at;
  }
  return nullptr;
}

bool IsAt(const Mesh& mesh, const Role& role, const std::vector<int>& places) {
  for (int i = 0; i < mesh.axes_size(); ++i) {
    const Role::Place* const at = PlaceOn(role, mesh.axes(i).name());
    if (at != nullptr && at->place() != places[i]) return false;
  }
  return true;
}

int64_t RankCount(const Mesh& mesh, const Role& role) {
  int64_t ranks = 1;
  for (const Axis& axis : mesh.axes()) {
    if (PlaceOn(role, axis.name()) == nullptr) ranks *= axis.size();
  }
  return ranks;
}

absl::Status CheckPlaces(const Mesh& mesh, const Role& role) {
  std::set<std::string> named;
  for (const Role::Place& at : role.at()) {
    const bool there = std::any_of(
        mesh.axes().begin(), mesh.axes().end(), [&](const Axis& axis) {
          return axis.name() == at.axis() && at.place() >= 0 &&
                 at.place() < axis.size();
        });
    if (there && named.insert(at.axis()).second) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("role ", RoleText(role), ": there is no such place in ",
                     MeshText(mesh)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckRoles(const Plan& plan) {
  int64_t ranks = 0;
  for (const Role& role : plan.roles()) {
    RETURN_IF_ERROR(CheckPlaces(plan.mesh(), role));
    ranks += RankCount(plan.mesh(), role);
  }
  const std::vector<int> roles = RoleIndices(plan);
  const auto none = std::find(roles.begin(), roles.end(), -1);
  if (none != roles.end()) {
    return absl::FailedPreconditionError(
        absl::StrCat("rank ", none - roles.begin(), " has no role"));
  }
  if (ranks == MeshSize(plan.mesh())) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the roles are of ", ranks, " ranks, and the mesh has ",
                   MeshSize(plan.mesh()), ": some have several"));
}

int RoleIndexOf(const Plan& plan, int rank) {
  const std::vector<int> places = Coordinates(plan.mesh(), rank);
  for (int i = 0; i < plan.roles_size(); ++i) {
    if (IsAt(plan.mesh(), plan.roles(i), places)) return i;
  }
  return -1;
}

std::vector<int> RoleIndices(const Plan& plan) {
  std::vector<int> roles(MeshSize(plan.mesh()), -1);
  for (int i = 0; i < plan.roles_size(); ++i) {
    for (const int rank : RanksOf(plan.mesh(), plan.roles(i))) {
      if (roles[rank] < 0) roles[rank] = i;
    }
  }
  return roles;
}

const Role& RoleOf(const Plan& plan, int rank) {
  const int index = RoleIndexOf(plan, rank);
  CHECK_GE(index, 0) << "rank " << rank << " has no role";
  return plan.roles(index);
}

int FirstRankOf(const Mesh& mesh, const Role& role) {
  int rank = 0;
  for (const Axis& axis : mesh.axes()) {
    const Role::Place* const at = PlaceOn(role, axis.name());
    rank = rank * axis.size() + (at == nullptr ? 0 : at->place());
  }
  return rank;
}

std::vector<int> RanksOf(const Mesh& mesh, const Role& role) {
  std::vector<int> ranks = {0};
  for (const Axis& axis : mesh.axes()) {
    const Role::Place* const at = PlaceOn(role, axis.name());
    const int first = at == nullptr ? 0 : at->place();
    const int end = at == nullptr ? axis.size() : at->place() + 1;
    std::vector<int> longer;
    for (const int rank : ranks) {
      for (int p = first; p < end; ++p)
        longer.push_back(rank * axis.size() + p);
    }
    ranks = std::move(longer);
  }
  return ranks;
}

int FirstRankIn(const Mesh& mesh, const Role& role, const Box& box) {
  int rank = 0;
  for (int i = 0; i < mesh.axes_size(); ++i) {
    const Role::Place* const at = PlaceOn(role, mesh.axes(i).name());
    const std::vector<int>& places = box[i];
    const bool is_in =
        at == nullptr
            ? !places.empty()
            : std::binary_search(places.begin(), places.end(), at->place());
    if (!is_in) return -1;
    rank = rank * mesh.axes(i).size() +
           (at == nullptr ? places.front() : at->place());
  }
  return rank;
}

bool AreIn(const Mesh& mesh, const Role& role, const Group& group) {
  for (const Group::Span& span : group.spans()) {
    if (span.places().empty()) continue;
    // Whoever is at any place of the axis is at one that is not spanned, too.
    const bool all = span.places_size() == AxisSize(mesh, span.axis());
    if (PlaceOn(role, span.axis()) == nullptr && !all) return false;
  }
  return GroupNumber(mesh, group, FirstRankOf(mesh, role)) >= 0;
}

bool NamesPlaceOn(const Role& role, absl::string_view axis) {
  return PlaceOn(role, axis) != nullptr;
}

const Placement* FindPlacement(const Role& role, int unit) {
  for (const Placement& placement : role.placements()) {
    if (placement.unit() == unit) return &placement;
  }
  return nullptr;
}

std::string RoleText(const Role& role) {
  if (role.at().empty()) return "all ranks";
  return absl::StrJoin(role.at(), " ",
                       [](std::string* out, const Role::Place& at) {
                         absl::StrAppend(out, at.axis(), " ", at.place());
                       });
}

}  // namespace troupe
