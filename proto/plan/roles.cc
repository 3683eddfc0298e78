#include "proto/plan/roles.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/groups.h"
#include "proto/plan/mesh.h"

namespace troupe {
namespace {

// Ascending; none: it is at all places.
std::vector<int> PlacesOn(const Role& role, absl::string_view axis) {
  std::vector<int> places;
  for (const Role::Place& at : role.at()) {
    if (at.axis() == axis) places.push_back(at.place());
  }
  return places;
}

std::vector<int> PlacesOn(const Role& role, const Axis& axis) {
  std::vector<int> places = PlacesOn(role, axis.name());
  if (!places.empty()) return places;
  places.resize(axis.size());
  std::iota(places.begin(), places.end(), 0);
  return places;
}

bool IsAt(const Mesh& mesh, const Role& role, const std::vector<int>& places) {
  for (int i = 0; i < mesh.axes_size(); ++i) {
    const std::vector<int> at = PlacesOn(role, mesh.axes(i).name());
    if (!at.empty() && !std::binary_search(at.begin(), at.end(), places[i])) {
      return false;
    }
  }
  return true;
}

int64_t RankCount(const Mesh& mesh, const Role& role) {
  int64_t ranks = 1;
  for (const Axis& axis : mesh.axes()) {
    const std::vector<int> at = PlacesOn(role, axis.name());
    ranks *= at.empty() ? axis.size() : static_cast<int64_t>(at.size());
  }
  return ranks;
}

// Each is in the mesh, and those of an axis ascend.
absl::Status CheckPlaces(const Mesh& mesh, const Role& role) {
  std::map<std::string, int> last;
  for (const Role::Place& at : role.at()) {
    const bool there = std::any_of(
        mesh.axes().begin(), mesh.axes().end(), [&](const Axis& axis) {
          return axis.name() == at.axis() && at.place() < axis.size();
        });
    int& before = last.try_emplace(at.axis(), -1).first->second;
    if (there && at.place() > before) {
      before = at.place();
      continue;
    }
    return absl::FailedPreconditionError(
        absl::StrCat("role ", RoleText(role), ": there is no such place in ",
                     MeshText(mesh), ", or it is named twice"));
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
    const std::vector<int> at = PlacesOn(role, axis.name());
    rank = rank * axis.size() + (at.empty() ? 0 : at.front());
  }
  return rank;
}

std::vector<int> RanksOf(const Mesh& mesh, const Role& role) {
  std::vector<int> ranks = {0};
  for (const Axis& axis : mesh.axes()) {
    const std::vector<int> places = PlacesOn(role, axis);
    std::vector<int> longer;
    for (const int rank : ranks) {
      for (const int p : places) longer.push_back(rank * axis.size() + p);
    }
    ranks = std::move(longer);
  }
  return ranks;
}

int FirstRankIn(const Mesh& mesh, const Role& role, const Box& box) {
  int rank = 0;
  for (int i = 0; i < mesh.axes_size(); ++i) {
    const std::vector<int> at = PlacesOn(role, mesh.axes(i).name());
    const std::vector<int>& places = box[i];
    const auto first =
        std::find_if(places.begin(), places.end(), [&](int place) {
          return at.empty() || std::binary_search(at.begin(), at.end(), place);
        });
    if (first == places.end()) return -1;
    rank = rank * mesh.axes(i).size() + *first;
  }
  return rank;
}

bool AreIn(const Mesh& mesh, const Role& role, const Group& group) {
  for (const Group::Span& span : group.spans()) {
    if (span.places().empty()) continue;
    const std::vector<int> at = PlacesOn(role, span.axis());
    // A role at any place of the axis is at one that is not spanned, too.
    if (at.empty() && span.places_size() < AxisSize(mesh, span.axis())) {
      return false;
    }
    const bool spanned = std::includes(
        span.places().begin(), span.places().end(), at.begin(), at.end());
    if (!spanned) return false;
  }
  return GroupNumber(mesh, group, FirstRankOf(mesh, role)) >= 0;
}

bool NamesPlaceOn(const Role& role, absl::string_view axis) {
  return PlacesOn(role, axis).size() == 1;
}

const Placement* FindPlacement(const Role& role, int unit) {
  for (const Placement& placement : role.placements()) {
    if (placement.unit() == unit) return &placement;
  }
  return nullptr;
}

std::string RoleText(const Role& role) {
  if (role.at().empty()) return "all ranks";
  std::string text;
  for (int i = 0; i < role.at_size(); ++i) {
    const Role::Place& at = role.at(i);
    const bool another = i > 0 && role.at(i - 1).axis() == at.axis();
    absl::StrAppend(&text,
                    i == 0    ? ""
                    : another ? ","
                              : " ",
                    another ? "" : absl::StrCat(at.axis(), " "), at.place());
  }
  return text;
}

}  // namespace troupe
