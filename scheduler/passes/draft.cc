#include "scheduler/passes/draft.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"

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

int ReplicaGroup(const Plan& plan, int unit) {
  for (const Placement& placement : plan.placements()) {
    if (placement.unit() == unit) return placement.replica_group();
  }
  CHECK(false) << "unit " << unit << " is placed nowhere";
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

std::string TransferGroupName(int data_index, Lane lane) {
  return absl::StrCat("pipeline-", data_index, "-",
                      lane == ACTIVATIONS ? "activations" : "gradients");
}

int TransferGroup(const Plan& plan, int data_index, Lane lane) {
  const std::string name = TransferGroupName(data_index, lane);
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

std::vector<std::vector<int>> SpreadUnits(const Plan& plan) {
  std::vector<int> largest_first;
  for (int u = 0; u < plan.units_size(); ++u) {
    if (plan.units(u).flat_elements() > 0) largest_first.push_back(u);
  }
  std::stable_sort(
      largest_first.begin(), largest_first.end(), [&](int a, int b) {
        return plan.units(a).flat_elements() > plan.units(b).flat_elements();
      });
  std::vector<std::vector<int>> spread(plan.ranks_size());
  std::vector<int64_t> bytes(plan.ranks_size(), 0);
  for (const int u : largest_first) {
    const Group& group = plan.groups(ReplicaGroup(plan, u));
    int least = group.ranks(0);
    for (const int rank : group.ranks()) {
      if (bytes[rank] < bytes[least]) least = rank;
    }
    spread[least].push_back(u);
    bytes[least] += FlatBytes(plan.units(u));
  }
  for (std::vector<int>& units : spread) std::sort(units.begin(), units.end());
  return spread;
}

int64_t FlatBytes(const Unit& unit) {
  return unit.flat_elements() * kBytesOfF32;
}

}  // namespace troupe
