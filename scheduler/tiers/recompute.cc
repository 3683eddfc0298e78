#include "scheduler/tiers/recompute.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/string_view.h"
#include "proto/base/check.h"
#include "proto/plan/place_unit.h"

namespace troupe {
namespace {

struct Row {
  absl::string_view mode;
  std::vector<Keeps> (*keeps)(const RecomputeSpec& spec,
                              const RecomputedUnits& units);
  bool tried = false;  // by a search
};

std::vector<Keeps> None(const RecomputeSpec&, const RecomputedUnits& units) {
  return std::vector<Keeps>(units.count, Keeps::kAll);
}

std::vector<Keeps> But(Keeps what, const RecomputedUnits& units) {
  std::vector<Keeps> keeps(units.count, what);
  if (units.last_turns_at_once) keeps.back() = Keeps::kAll;
  return keeps;
}

std::vector<Keeps> Selective(const RecomputeSpec&,
                             const RecomputedUnits& units) {
  return But(Keeps::kCostly, units);
}

std::vector<Keeps> Full(const RecomputeSpec&, const RecomputedUnits& units) {
  return But(Keeps::kInput, units);
}

std::vector<Keeps> Listed(const RecomputeSpec& spec,
                          const RecomputedUnits& units) {
  std::vector<Keeps> keeps(units.count, Keeps::kAll);
  for (const int u : spec.selective_units()) keeps.at(u) = Keeps::kCostly;
  for (const int u : spec.units()) keeps.at(u) = Keeps::kInput;
  return keeps;
}

constexpr Row kRows[] = {{kRecomputeNone, None, /*tried=*/true},
                         {"selective", Selective, /*tried=*/true},
                         {"full", Full, /*tried=*/true},
                         {kRecomputeList, Listed},
                         {kRecomputeAuto, None}};

bool IsCostly(const UnitTable& table) {
  const UnitPlaces places = PlaceUnit(table, UnitUse::kTraining);
  const Work work = WorkAgain(table, places, 0, table.ops_size());
  return work.matmul_flops() > 0 || work.attention_flops() > 0;
}

// Chunks of rows go back at once, so that nothing is kept of them but what they
// read (loss_chunks.h).
bool IsInChunks(const UnitTable& table) {
  return std::any_of(table.ops().begin(), table.ops().end(),
                     [](const Op& op) { return op.has_chunk(); });
}

UnitTable Marked(UnitTable table, Keeps keeps) {
  if (IsInChunks(table)) return table;
  for (TensorSpec& tensor : *table.mutable_tensors()) {
    if (keeps == Keeps::kAll || tensor.home() != TensorSpec::WITHIN) continue;
    tensor.set_again(true);
    if (keeps == Keeps::kCostly && IsCostly(table)) tensor.set_again(false);
  }
  return table;
}

}  // namespace

std::vector<Keeps> KeptBy(const RecomputeSpec& spec,
                          const RecomputedUnits& units) {
  for (const Row& row : kRows) {
    if (row.mode == spec.mode()) return row.keeps(spec, units);
  }
  CHECK(false) << "no row " << spec.mode();
  return {};
}

std::vector<std::string> RecomputeModes() {
  std::vector<std::string> modes;
  for (const Row& row : kRows) modes.emplace_back(row.mode);
  return modes;
}

std::vector<std::string> TriedRecomputeModes() {
  std::vector<std::string> modes;
  for (const Row& row : kRows) {
    if (row.tried) modes.emplace_back(row.mode);
  }
  return modes;
}

std::vector<std::string> LeanerRecomputeModes(const std::string& mode) {
  const std::vector<std::string> tried = TriedRecomputeModes();
  const auto found = std::find(tried.begin(), tried.end(), mode);
  if (found == tried.end()) return {};
  return {found + 1, tried.end()};
}

void MarkAgain(const std::vector<Keeps>& keeps, UnitList& units) {
  std::map<std::pair<int, Keeps>, int> marked;  // the new table's index
  std::vector<UnitTable> tables;
  for (size_t u = 0; u < units.units.size(); ++u) {
    Unit& unit = units.units[u];
    if (!unit.has_table()) continue;
    const auto [found, is_new] =
        marked.try_emplace({unit.table(), keeps.at(u)}, tables.size());
    if (is_new) tables.push_back(Marked(units.tables[unit.table()], keeps[u]));
    unit.set_table(found->second);
  }
  units.tables = std::move(tables);
  units.Derive();
}

}  // namespace troupe
