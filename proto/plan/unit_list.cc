#include "proto/plan/unit_list.h"

#include <utility>

#include "proto/plan/ops/op_rules.h"
#include "proto/plan/place_unit.h"

namespace troupe {
namespace {

void Derive(const UnitTable& table, Unit& unit) {
  const UnitPlaces places = PlaceUnit(table, UnitUse::kTraining);
  unit.set_activation_bytes(places.activation_bytes);
  unit.set_stash_bytes(places.stash_bytes);
  unit.set_weight_stash_bytes(places.weight_stash_bytes);
  unit.set_workspace_bytes(places.workspace_bytes);
  UnitWork work = WorkOf(table);
  *unit.mutable_forward() = std::move(work.forward);
  *unit.mutable_backward_input() = std::move(work.backward_input);
  *unit.mutable_backward_weight() = std::move(work.backward_weight);
}

void CopyDerived(const Unit& from, Unit& to) {
  to.set_activation_bytes(from.activation_bytes());
  to.set_stash_bytes(from.stash_bytes());
  to.set_weight_stash_bytes(from.weight_stash_bytes());
  to.set_workspace_bytes(from.workspace_bytes());
  *to.mutable_forward() = from.forward();
  *to.mutable_backward_input() = from.backward_input();
  *to.mutable_backward_weight() = from.backward_weight();
}

}  // namespace

void UnitList::Append(UnitBuilder&& builder) {
  auto [unit, table] = std::move(builder).Build();
  const bool same = !tables.empty() && tables.back().SerializeAsString() ==
                                           table.SerializeAsString();
  if (same) {
    CopyDerived(units.back(), unit);
  } else {
    Derive(table, unit);
    tables.push_back(std::move(table));
  }
  unit.set_table(static_cast<int32_t>(tables.size()) - 1);
  units.push_back(std::move(unit));
}

}  // namespace troupe
