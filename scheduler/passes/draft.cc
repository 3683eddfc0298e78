#include "scheduler/passes/draft.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/plan/mesh.h"

namespace troupe {
namespace {

constexpr int64_t kBytesOfF32 = 4;

}  // namespace

std::vector<int> UnitsOf(const Plan& plan, int rank) {
  std::vector<int> units;
  for (const Placement& placement : plan.placements()) {
    if (placement.rank() == rank) units.push_back(placement.unit());
  }
  std::sort(units.begin(), units.end());
  return units;
}

std::vector<Placement> PlacementsOf(const Plan& plan, int rank) {
  std::vector<Placement> placements;
  for (const Placement& placement : plan.placements()) {
    if (placement.rank() == rank) placements.push_back(placement);
  }
  std::stable_sort(placements.begin(), placements.end(),
                   [](const Placement& a, const Placement& b) {
                     return a.unit() < b.unit();
                   });
  return placements;
}

int ExchangeGroup(const Plan& plan, absl::string_view axis, int rank) {
  const int size = AxisSize(plan.mesh(), axis);
  for (int g = 0; g < plan.groups_size(); ++g) {
    const Group& group = plan.groups(g);
    if (group.ranks_size() != size || !absl::StartsWith(group.name(), axis)) {
      continue;
    }
    if (std::count(group.ranks().begin(), group.ranks().end(), rank) > 0) {
      return g;
    }
  }
  CHECK(false) << "no group along " << axis << " has rank " << rank;
  return -1;
}

int WorldGroup(const Plan& plan) {
  for (int g = 0; g < plan.groups_size(); ++g) {
    if (plan.groups(g).name() == kWorldGroup) return g;
  }
  // Without pipelines, the first group is of all.
  CHECK(plan.groups_size() > 0 &&
        plan.groups(0).ranks_size() == plan.ranks_size())
      << "no group has all " << plan.ranks_size() << " ranks";
  return 0;
}

std::string TransferGroupName(int pipeline, Lane lane) {
  return absl::StrCat("pipeline-", pipeline, "-",
                      lane == ACTIVATIONS ? "activations" : "gradients");
}

int TransferGroup(const Plan& plan, int pipeline, Lane lane) {
  const std::string name = TransferGroupName(pipeline, lane);
  for (int g = 0; g < plan.groups_size(); ++g) {
    if (plan.groups(g).name() == name) return g;
  }
  CHECK(false) << "no group " << name;
  return -1;
}

std::vector<int> GradientUnits(const Plan& plan, int unit) {
  std::vector<int> units = {unit};
  for (const Unit::Tied& tied : plan.units(unit).tied()) {
    units.push_back(tied.unit());
  }
  std::sort(units.begin(), units.end());
  return units;
}

namespace {

// The first part that a rank does anything for, where those that hold the same
// of a part are neighbours: the first of them does. Parts that most ranks have
// come first.
int FirstPart(const Plan& plan, const Unit& unit, int rank) {
  for (int p = 0; p < unit.parts_size(); ++p) {
    bool first = true;
    for (const Unit::Part::Share& share : unit.parts(p).shares()) {
      first &=
          CoordinateOn(plan.mesh(), share.axis(), rank) % share.copies() == 0;
    }
    if (first) return p;
  }
  return unit.parts_size();
}

}  // namespace

std::vector<std::vector<Duty>> SpreadUnits(const Plan& plan) {
  std::vector<int> largest_first;
  for (int u = 0; u < plan.units_size(); ++u) {
    if (plan.units(u).flat_elements() > 0) largest_first.push_back(u);
  }
  std::stable_sort(
      largest_first.begin(), largest_first.end(), [&](int a, int b) {
        return plan.units(a).flat_elements() > plan.units(b).flat_elements();
      });
  // By unit: those that hold it, by what they have of it, in their order.
  std::vector<std::map<int, std::vector<int>>> holders(plan.units_size());
  for (const Placement& placement : plan.placements()) {
    const int place = CoordinateOn(plan.mesh(), "tensor", placement.rank());
    holders[placement.unit()][place].push_back(placement.rank());
  }
  std::vector<std::vector<Duty>> spread(plan.ranks_size());
  std::vector<int64_t> bytes(plan.ranks_size(), 0);
  for (const int u : largest_first) {
    const Unit& unit = plan.units(u);
    for (auto& [place, ranks] : holders[u]) {
      std::sort(ranks.begin(), ranks.end());
      int least = ranks.front();
      for (const int rank : ranks) {
        if (bytes[rank] < bytes[least]) least = rank;
      }
      const int part = FirstPart(plan, unit, least);
      if (part == unit.parts_size()) continue;
      spread[least].push_back({.unit = u, .part = part});
      bytes[least] += FlatBytes(unit);
    }
  }
  for (std::vector<Duty>& duties : spread) {
    std::sort(duties.begin(), duties.end(),
              [](const Duty& a, const Duty& b) { return a.unit < b.unit; });
  }
  return spread;
}

int64_t FlatBytes(const Unit& unit) {
  return unit.flat_elements() * kBytesOfF32;
}

}  // namespace troupe
