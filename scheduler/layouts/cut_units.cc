#include "scheduler/layouts/cut_units.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/plan/ops/op_rules.h"
#include "proto/plan/slices.h"
#include "proto/plan/tensor_spec.h"
#include "scheduler/layouts/append_to_flat.h"
#include "scheduler/layouts/cut_table.h"
#include "scheduler/layouts/cut_with_ends.h"
#include "scheduler/layouts/share_room.h"

namespace troupe {
namespace {

bool IsCutAtRest(const AxisRules& axis, const Dim& dim) {
  for (const Dim::Section& section : dim.sections()) {
    const DimRule* const rule = RuleOf(axis, section.kind());
    if (rule != nullptr && !rule->turned) return true;
  }
  return false;
}

// A neighbour does the work of a fused op only where nothing is exchanged
// between.
void PartWhatExchangesPart(UnitTable& table) {
  const auto takes_in = [&table](int op) {
    return op >= 0 && op < table.ops_size() &&
           RulesOf({table, table.ops(op)}).takes_in_fused;
  };
  for (int index = 0; index < table.ops_size(); ++index) {
    Op& op = *table.mutable_ops(index);
    if (!op.fused()) continue;
    const Fusion fusion = RulesOf({table, op}).fusion;
    const bool by_maker =
        takes_in(index - 1) &&
        table.ops(index - 1).outputs(0).tensor() == op.inputs(0).tensor();
    const bool by_reader =
        takes_in(index + 1) &&
        table.ops(index + 1).inputs(0).tensor() == op.outputs(0).tensor();
    if ((fusion.forward_by_maker && !by_maker) ||
        (fusion.backward_by_reader && !by_reader)) {
      op.set_fused(false);
    }
  }
}

using Shares = std::vector<Unit::Part::Share>;

// How an axis shares out a parameter, whose dims it cuts. `summed`: what a rank
// has of the gradient of one that is not cut is a summand.
Unit::Part::Share CutParameter(const AxisRules& axis, bool summed,
                               Parameter& parameter) {
  Unit::Part::Share share;
  share.set_axis(axis.axis);
  share.set_copies(axis.size);
  share.set_summed(summed);
  for (Dim& dim : *parameter.mutable_dims()) {
    if (!IsCutAtRest(axis, dim)) continue;
    for (const Dim::Section& section : dim.sections()) {
      if (RuleOf(axis, section.kind()) == nullptr) continue;
      share.set_copies(CopiesOfPiece(section.count(), axis.size));
      share.set_summed(share.copies() > 1);
    }
    CutDim(axis, dim);
  }
  return share;
}

// Lays the parameters out in parts, those that most ranks have first.
void LayParts(const std::vector<Shares>& shares, Unit& unit) {
  const auto name = [](const Shares& of) {
    std::string text;
    for (const Unit::Part::Share& share : of) {
      absl::StrAppend(&text, share.SerializeAsString(), ";");
    }
    return text;
  };
  const auto copies = [](const Shares& of) {
    int64_t product = 1;
    for (const Unit::Part::Share& share : of) product *= share.copies();
    return product;
  };
  // By copies, then by name; parameters keep their order within a part.
  std::map<std::pair<int64_t, std::string>, std::vector<int>> parts;
  for (int p = 0; p < unit.parameters_size(); ++p) {
    parts[{-copies(shares[p]), name(shares[p])}].push_back(p);
  }
  unit.clear_parts();
  unit.set_flat_elements(0);
  for (const auto& [key, parameters] : parts) {
    Unit::Part& part = *unit.add_parts();
    part.set_elements(AppendToFlat(parameters, unit));
    for (const Unit::Part::Share& share : shares[parameters.front()]) {
      if (share.copies() > 1) *part.add_shares() = share;
    }
  }
  if (unit.parts().empty()) unit.add_parts();
}

// By unit and parameter, what the ops that use it say.
std::vector<bool> SummedParameters(const Unit& unit, const UnitTable& whole,
                                   const std::vector<bool>& by_op) {
  std::vector<bool> summed(unit.parameters_size(), false);
  for (int op = 0; op < whole.ops_size(); ++op) {
    for (const int parameter : whole.ops(op).parameters()) {
      if (parameter >= unit.parameters_size()) continue;
      summed[parameter] = summed[parameter] || by_op[op];
    }
  }
  return summed;
}

TableEnds EndsAlong(const Ends& ends, const std::string& axis) {
  const auto found = ends.find(axis);
  return found == ends.end() ? TableEnds() : found->second;
}

}  // namespace

void CutWithEnds(const std::vector<AxisRules>& axes,
                 const std::vector<Ends>& ends, UnitList& units) {
  for (const AxisRules& axis : axes) {
    if (axis.prepare == nullptr) continue;
    axis.prepare(axis.span(), units);
  }
  std::vector<std::vector<Shares>> shares;  // by unit and parameter
  for (const Unit& unit : units.units) {
    shares.emplace_back(unit.parameters_size());
  }
  for (const AxisRules& axis : axes) {
    std::vector<std::vector<bool>> sums;
    std::vector<UnitTable> cut;
    for (size_t t = 0; t < units.tables.size(); ++t) {
      CutTable table_cut =
          CutAlong(axis, EndsAlong(ends[t], axis.axis), units.tables[t]);
      sums.push_back(std::move(table_cut.sums_parameters));
      cut.push_back(std::move(table_cut.table));
      if (axis.rewrite == nullptr) continue;
      axis.rewrite(axis.span(), cut.back());
    }
    for (size_t u = 0; u < units.units.size(); ++u) {
      Unit& unit = units.units[u];
      if (!unit.has_table()) continue;
      const std::vector<bool> summed = SummedParameters(
          unit, units.tables[unit.table()], sums[unit.table()]);
      for (int p = 0; p < unit.parameters_size(); ++p) {
        shares[u][p].push_back(
            CutParameter(axis, summed[p], *unit.mutable_parameters(p)));
      }
    }
    units.tables = std::move(cut);
  }
  for (UnitTable& table : units.tables) {
    for (const AxisRules& axis : axes) {
      if (axis.finish != nullptr) axis.finish(table);
    }
    ShareRoom(axes, table);
    PartWhatExchangesPart(table);
  }
  for (size_t u = 0; u < units.units.size(); ++u) {
    LayParts(shares[u], units.units[u]);
  }
}

void CutUnits(const std::vector<AxisRules>& axes, UnitList& units) {
  if (axes.empty()) return;
  CutWithEnds(axes, std::vector<Ends>(units.tables.size()), units);
  units.Derive();
}

}  // namespace troupe
