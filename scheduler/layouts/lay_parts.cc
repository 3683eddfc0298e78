#include "scheduler/layouts/lay_parts.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "proto/plan/optimizer_rules.h"
#include "proto/plan/optimizer_states.h"
#include "proto/plan/slices.h"
#include "scheduler/layouts/append_to_flat.h"

namespace troupe {
namespace {

// What parameters of one part have in common afterwards. Smaller ones lie
// first.
struct Kind {
  bool frozen = false;
  int64_t states_less = 0;  // minus their number
  int part = 0;             // before
  int rule = 0;

  bool operator<(const Kind& other) const {
    return std::tie(frozen, states_less, part, rule) <
           std::tie(other.frozen, other.states_less, other.part, other.rule);
  }
};

int PartWith(const Unit& unit, const Parameter& parameter) {
  int part = 0;
  while (parameter.offset() >= RangeOfPart(unit, part).end) ++part;
  return part;
}

Kind KindOf(const OptimizerSpec& optimizer, const Unit& unit,
            const Parameter& parameter) {
  Kind kind = {.frozen = parameter.frozen(), .part = PartWith(unit, parameter)};
  // State of a router is changed by no rule.
  if (kind.frozen || parameter.has_load()) return kind;
  kind.rule = RuleOf(optimizer, parameter.name());
  kind.states_less =
      -static_cast<int64_t>(StatesOfRule(optimizer, kind.rule).size());
  return kind;
}

void SplitParts(const OptimizerSpec& optimizer, Unit& unit) {
  std::vector<int> as_they_lie;
  for (int p = 0; p < unit.parameters_size(); ++p) as_they_lie.push_back(p);
  std::stable_sort(
      as_they_lie.begin(), as_they_lie.end(), [&unit](int a, int b) {
        return unit.parameters(a).offset() < unit.parameters(b).offset();
      });
  std::map<Kind, std::vector<int>> kinds;
  for (const int p : as_they_lie) {
    kinds[KindOf(optimizer, unit, unit.parameters(p))].push_back(p);
  }
  const std::vector<Unit::Part> parts = {unit.parts().begin(),
                                         unit.parts().end()};
  unit.clear_parts();
  unit.set_flat_elements(0);
  for (const auto& [kind, parameters] : kinds) {
    Unit::Part& part = *unit.add_parts() = parts[kind.part];
    part.set_frozen(kind.frozen);
    part.set_rule(kind.rule);
    part.set_elements(AppendToFlat(parameters, unit));
  }
}

}  // namespace

void LayParts(const OptimizerSpec& optimizer, UnitList& units) {
  for (Unit& unit : units.units) {
    const bool differs =
        optimizer.groups_size() > 0 ||
        std::any_of(
            unit.parameters().begin(), unit.parameters().end(),
            [](const Parameter& parameter) { return parameter.frozen(); });
    if (differs && !unit.parameters().empty()) SplitParts(optimizer, unit);
    for (Unit::Part& part : *unit.mutable_parts()) {
      part.set_whole_parameters(!part.frozen() &&
                                UpdatesMatrices(optimizer, part.rule()));
    }
  }
}

}  // namespace troupe
