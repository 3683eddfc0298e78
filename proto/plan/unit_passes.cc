#include "proto/plan/unit_passes.h"

#include <utility>

#include "proto/base/check.h"
#include "proto/plan/ops/op_rules.h"

namespace troupe {
namespace {

SegmentUse SyntheticUse(Instruction::Kind kind) {
  const MemoryUse output_gradient = {UnitMemory::kOutputGradient, true, false};
  const MemoryUse kept = {UnitMemory::kOutput, true, false};
  const MemoryUse saved = {UnitMemory::kStash, true, false};
  SegmentUse use;
  use.works = true;
  if (kind == Instruction::RECOMPUTE) return {};
  switch (kind) {
    case Instruction::FORWARD:
      use.memories = {{UnitMemory::kInput, true, false},
                      {UnitMemory::kOutput, false, true},
                      {UnitMemory::kStash, false, true}};
      use.weights = true;
      break;
    case Instruction::BACKWARD_INPUT:
      use.memories = {output_gradient,
                      kept,
                      saved,
                      {UnitMemory::kInputGradient, false, true}};
      use.weights = true;
      break;
    default:
      use.memories = {output_gradient, kept, saved};
      use.weight_gradients = true;
  }
  return use;
}

const Work& WorkOf(const Unit& unit, Instruction::Kind kind) {
  if (kind == Instruction::FORWARD) return unit.forward();
  if (kind == Instruction::RECOMPUTE) return unit.recompute();
  return kind == Instruction::BACKWARD_INPUT ? unit.backward_input()
                                             : unit.backward_weight();
}

Work WorkOf(const UnitTable& table, const UnitPlaces& places,
            Instruction::Kind kind, const Segment& segment) {
  if (kind == Instruction::RECOMPUTE) {
    return WorkAgain(table, places, segment.begin, segment.end);
  }
  const UnitWork work = WorkOf(table, segment.begin, segment.end);
  if (kind == Instruction::FORWARD) return work.forward;
  return kind == Instruction::BACKWARD_INPUT ? work.backward_input
                                             : work.backward_weight;
}

}  // namespace

UnitPasses::UnitPasses(const Plan& plan)
    : tables_(plan.tables_size()), table_of_(plan.units_size(), -1) {
  for (int u = 0; u < plan.units_size(); ++u) {
    const Unit& unit = plan.units(u);
    addends_.emplace_back(unit.addends().begin(), unit.addends().end());
    if (!unit.has_table()) {
      table_of_[u] = static_cast<int>(tables_.size());
      OfTable& synthetic = tables_.emplace_back();
      for (const Instruction::Kind kind : kUnitPasses) {
        synthetic.passes[kind] = {{{}, SyntheticUse(kind), WorkOf(unit, kind)}};
      }
      continue;
    }
    table_of_[u] = unit.table();
    OfTable& of_table = tables_[unit.table()];
    if (!of_table.passes.empty()) continue;
    const UnitTable& table = plan.tables(unit.table());
    of_table.places = PlaceUnit(table, UnitUse::kTraining);
    of_table.rounds = RoundsOfOps(table);
    of_table.chunks = ChunksOfOps(table);
    for (const auto& [kind, uses] : SegmentUses(unit, table, of_table.places)) {
      const std::vector<Segment> segments = SegmentsOf(table, kind);
      for (size_t s = 0; s < segments.size(); ++s) {
        of_table.passes[kind].push_back(
            {segments[s], uses[s],
             WorkOf(table, of_table.places, kind, segments[s])});
      }
    }
  }
}

const std::vector<UnitPasses::Pass>& UnitPasses::Of(
    int unit, Instruction::Kind kind) const {
  return TableOf(unit).passes.at(kind);
}

std::vector<Unit::Addend> UnitPasses::SumsOf(int unit, int segment) const {
  const std::vector<Pass>& passes = Of(unit, Instruction::FORWARD);
  std::vector<Unit::Addend> sums = passes.at(segment).use.sums;
  for (size_t s = segment + 1; s < passes.size(); ++s) {
    if (passes[s].use.works) return sums;
  }
  sums.insert(sums.end(), addends_[unit].begin(), addends_[unit].end());
  return sums;
}

bool UnitPasses::EndsBackward(int unit, int segment) const {
  for (const Instruction::Kind kind :
       {Instruction::BACKWARD_INPUT, Instruction::BACKWARD_WEIGHT}) {
    const std::vector<Pass>& passes = Of(unit, kind);
    for (int s = 0; s < segment; ++s) {
      if (passes[s].use.works) return false;
    }
  }
  return true;
}

const UnitPlaces& UnitPasses::Places(int unit) const {
  return TableOf(unit).places;
}

}  // namespace troupe
