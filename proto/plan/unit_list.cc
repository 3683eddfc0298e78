#include "proto/plan/unit_list.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/ops/op_rules.h"
#include "proto/plan/place_unit.h"

namespace troupe {
namespace {

// All of the flat buffer lies alike, where nobody has said otherwise.
void AddOnePart(Unit& unit) {
  unit.add_parts()->set_elements(unit.flat_elements());
}

absl::Status AddToBatch(const BatchTensor& tensor, BatchSchema& batch) {
  const std::string& name = tensor.tensor().name();
  const BatchTensor* const known = FindBatchTensor(batch, name);
  if (known == nullptr) {
    *batch.Add() = tensor;
    return absl::OkStatus();
  }
  if (known->SerializeAsString() == tensor.SerializeAsString()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("reads ", name, " of the batch from ", tensor.source(),
                   ", which others read from ", known->source(),
                   "; give one of them another name"));
}

absl::Status DeriveUnit(const UnitTable& table, Unit& unit) {
  ASSIGN_OR_RETURN(const UnitPlaces places,
                   TryPlaceUnit(table, UnitUse::kTraining));
  unit.set_activation_bytes(places.activation_bytes);
  unit.set_stash_bytes(places.stash_bytes);
  unit.set_weight_stash_bytes(places.weight_stash_bytes);
  unit.set_workspace_bytes(places.workspace_bytes);
  unit.set_segment_bytes(places.segment_bytes);
  unit.set_segment_gradient_bytes(places.segment_gradient_bytes);
  unit.set_recomputed_bytes(places.recomputed_bytes);
  UnitWork work = WorkOf(table);
  *unit.mutable_forward() = std::move(work.forward);
  *unit.mutable_backward_input() = std::move(work.backward_input);
  *unit.mutable_backward_weight() = std::move(work.backward_weight);
  unit.clear_recompute();
  if (places.recomputed_bytes > 0) {
    *unit.mutable_recompute() = WorkAgain(table, places, 0, table.ops_size());
  }
  return absl::OkStatus();
}

void CopyDerived(const Unit& from, Unit& to) {
  to.set_activation_bytes(from.activation_bytes());
  to.set_stash_bytes(from.stash_bytes());
  to.set_weight_stash_bytes(from.weight_stash_bytes());
  to.set_workspace_bytes(from.workspace_bytes());
  to.set_segment_bytes(from.segment_bytes());
  to.set_segment_gradient_bytes(from.segment_gradient_bytes());
  to.set_recomputed_bytes(from.recomputed_bytes());
  *to.mutable_forward() = from.forward();
  *to.mutable_backward_input() = from.backward_input();
  *to.mutable_backward_weight() = from.backward_weight();
  to.clear_recompute();
  if (from.has_recompute()) *to.mutable_recompute() = from.recompute();
}

}  // namespace

absl::StatusOr<std::vector<int>> UnitList::TryAppend(UnitBuilder&& builder) {
  auto [unit, table, outputs, read] = std::move(builder).Build();
  for (const BatchTensor& tensor : read) {
    RETURN_IF_ERROR(AddToBatch(tensor, batch));
  }
  for (Unit::Source& source : *unit.mutable_inputs()) {
    if (source.unit() < 0) source.set_unit(static_cast<int>(units.size()) - 1);
  }
  const bool same = !tables.empty() && tables.back().SerializeAsString() ==
                                           table.SerializeAsString();
  if (same) {
    CopyDerived(units.back(), unit);
  } else {
    RETURN_IF_ERROR(DeriveUnit(table, unit));
    tables.push_back(std::move(table));
  }
  AddOnePart(unit);
  unit.set_table(static_cast<int32_t>(tables.size()) - 1);
  units.push_back(std::move(unit));
  return outputs;
}

void UnitList::Append(UnitBuilder&& builder) {
  CHECK_OK(TryAppend(std::move(builder)).status());
}

void UnitList::AppendWithoutOps(Unit unit) {
  AddOnePart(unit);
  if (!units.empty()) {
    unit.add_inputs()->set_unit(static_cast<int>(units.size()) - 1);
  }
  units.push_back(std::move(unit));
}

void UnitList::Derive() {
  LayBatch(tables, batch);
  for (size_t u = 0; u < units.size(); ++u) {
    Unit& unit = units[u];
    if (!unit.has_table()) continue;
    const bool same = u > 0 && units[u - 1].has_table() &&
                      units[u - 1].table() == unit.table();
    if (same) {
      CopyDerived(units[u - 1], unit);
    } else {
      CHECK_OK(DeriveUnit(tables[unit.table()], unit));
    }
  }
}

}  // namespace troupe
