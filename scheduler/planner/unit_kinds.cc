#include "scheduler/planner/unit_kinds.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>

namespace troupe {
namespace {

bool IsChain(const std::vector<Unit>& units) {
  for (size_t u = 0; u < units.size(); ++u) {
    const auto& inputs = units[u].inputs();
    const bool follows = u == 0
                             ? inputs.empty()
                             : inputs.size() == 1 && inputs[0].output() == 0 &&
                                   inputs[0].unit() == static_cast<int>(u) - 1;
    if (!follows) return false;
  }
  return true;
}

// Of what a unit is, all but its place in the model.
std::string Look(const UnitList& list, Unit unit) {
  std::string table;
  if (unit.has_table()) table = list.tables[unit.table()].SerializeAsString();
  unit.clear_layer();
  unit.clear_table();
  unit.clear_inputs();
  for (Parameter& parameter : *unit.mutable_parameters()) {
    parameter.clear_name();
    parameter.clear_random_site();
    parameter.clear_part_of();
    parameter.clear_each_in();
    parameter.clear_init();
    parameter.clear_init_std();
  }
  return unit.SerializeAsString() + table;
}

}  // namespace

std::vector<int> KindOfUnits(const UnitList& list) {
  std::vector<int> kinds(list.units.size());
  if (!IsChain(list.units)) {
    std::iota(kinds.begin(), kinds.end(), 0);
    return kinds;
  }
  std::map<std::string, int> known;
  for (size_t u = 0; u < kinds.size(); ++u) {
    kinds[u] = known
                   .try_emplace(Look(list, list.units[u]),
                                static_cast<int>(known.size()))
                   .first->second;
  }
  return kinds;
}

void KeepOneOfEachKind(const std::vector<int>& kinds, UnitList& list) {
  const int count = 1 + *std::max_element(kinds.begin(), kinds.end());
  if (count == static_cast<int>(kinds.size())) return;
  std::vector<Unit> kept;
  for (size_t u = 0; u < kinds.size(); ++u) {
    const int place = static_cast<int>(kept.size());
    if (kinds[u] != place) continue;
    Unit& unit = kept.emplace_back(std::move(list.units[u]));
    for (Unit::Source& source : *unit.mutable_inputs()) {
      source.set_unit(place - 1);
    }
    for (Unit::Tied& tied : *unit.mutable_tied()) {
      tied.set_unit(kinds[tied.unit()]);
    }
  }
  list.units = std::move(kept);
}

}  // namespace troupe
