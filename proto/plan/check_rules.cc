#include "proto/plan/check_rules.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/base/glob.h"
#include "proto/base/status.h"
#include "proto/plan/at_rest.h"
#include "proto/plan/groups.h"
#include "proto/plan/layout.h"
#include "proto/plan/optimizer_rules.h"
#include "proto/plan/optimizer_states.h"
#include "proto/plan/slices.h"

namespace troupe {
namespace {

absl::Status RuleFault(int unit, absl::string_view what) {
  return absl::FailedPreconditionError(absl::StrCat("unit ", unit, ": ", what));
}

// By the patterns: 0, or one more than the last group with a match.
int WantedRule(const OptimizerSpec& optimizer, const std::string& name) {
  int rule = 0;
  for (int g = 0; g < optimizer.groups_size(); ++g) {
    for (const std::string& pattern : optimizer.groups(g).match()) {
      if (GlobMatches(pattern, name)) rule = g + 1;
    }
  }
  return rule;
}

absl::Status CheckParts(const Plan& plan, int index) {
  const OptimizerSpec& optimizer = plan.job().optimizer();
  const Unit& unit = plan.units(index);
  size_t before = 0;  // states of the part before
  for (int p = 0; p < unit.parts_size(); ++p) {
    const Unit::Part& part = unit.parts(p);
    if (part.rule() < 0 || part.rule() > optimizer.groups_size() ||
        (part.frozen() && part.rule() != 0)) {
      return RuleFault(index,
                       absl::StrCat("part ", p, " has rule ", part.rule(),
                                    part.frozen() ? ", and is frozen"
                                                  : ", which no group is"));
    }
    if (part.frozen() || part.elements() == 0) continue;
    const size_t states = StatesOfPart(optimizer, part).size();
    if (p > 0 && states > before) {
      return RuleFault(
          index,
          absl::StrCat("part ", p, " has ", states,
                       " optimizer states, and lies behind one with ", before));
    }
    before = states;
  }
  return absl::OkStatus();
}

// A matrix that is updated as a whole lies in one slice of its stretch.
absl::Status CheckMatrix(const Plan& plan, const Placement& placement, int part,
                         const Parameter& parameter) {
  if (!placement.parts(part).has_dealt()) return absl::OkStatus();
  const Group& group = plan.groups(placement.parts(part).dealt());
  const int ranks = GroupSize(plan.mesh(), group);
  const Range all = StretchWith(plan, placement, part).all;
  const int64_t begin = parameter.offset() - all.begin;
  const Range lies = {begin, begin + LocalElements(parameter)};
  for (int r = 0; r < ranks; ++r) {
    const Range slice =
        group.weights().empty()
            ? EvenLines(all.size(), {.index = r, .count = ranks})
            : WeightedLines(all.size(), group.weights(), r);
    if (lies.begin < slice.begin || lies.begin >= slice.end) continue;
    if (lies.end <= slice.end) return absl::OkStatus();
  }
  return RuleFault(placement.unit(),
                   absl::StrCat(parameter.name(),
                                ", whose rule updates it as a "
                                "whole, lies in several slices"));
}

absl::Status CheckMatrices(const Plan& plan) {
  const OptimizerSpec& optimizer = plan.job().optimizer();
  for (const Role& role : plan.roles()) {
    for (const Placement& placement : role.placements()) {
      const Unit& unit = plan.units(placement.unit());
      for (int p = 0; p < unit.parts_size(); ++p) {
        const bool needed = !unit.parts(p).frozen() &&
                            UpdatesMatrices(optimizer, unit.parts(p).rule());
        if (unit.parts(p).whole_parameters() != needed) {
          return RuleFault(
              placement.unit(),
              absl::StrCat("part ", p, needed ? " has a" : " has no",
                           " rule that needs whole parameters, and "
                           "whole_parameters says otherwise"));
        }
        if (!needed) continue;
        const Range range = RangeOfPart(unit, p);
        for (const Parameter& parameter : unit.parameters()) {
          if (parameter.offset() < range.begin ||
              parameter.offset() >= range.end) {
            continue;
          }
          RETURN_IF_ERROR(CheckMatrix(plan, placement, p, parameter));
        }
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRulesOfParameters(const Plan& plan, int index) {
  const OptimizerSpec& optimizer = plan.job().optimizer();
  const Unit& unit = plan.units(index);
  int64_t begin = 0;
  for (int p = 0; p < unit.parts_size(); ++p) {
    const Unit::Part& part = unit.parts(p);
    const int64_t end = begin + part.elements();
    for (const Parameter& parameter : unit.parameters()) {
      const bool within =
          parameter.offset() >= begin && parameter.offset() < end;
      if (!within || part.frozen()) continue;
      const int wanted =
          parameter.has_load() ? 0 : WantedRule(optimizer, parameter.name());
      if (wanted != part.rule()) {
        return RuleFault(
            index, absl::StrCat(parameter.name(), " has rule ", wanted,
                                ", but its part ", p, " has ", part.rule()));
      }
      if (wanted == 0) continue;
      const OptimizerGroup& group = optimizer.groups(wanted - 1);
      if (group.has_weight_decay() &&
          parameter.weight_decay() != (group.weight_decay() > 0)) {
        return RuleFault(
            index, absl::StrCat(
                       parameter.name(),
                       parameter.weight_decay() ? " decays" : " does not decay",
                       ", and its group says otherwise"));
      }
    }
    begin = end;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckRules(const Plan& plan) {
  for (int u = 0; u < plan.units_size(); ++u) {
    RETURN_IF_ERROR(CheckParts(plan, u));
    RETURN_IF_ERROR(CheckRulesOfParameters(plan, u));
  }
  return CheckMatrices(plan);
}

}  // namespace troupe
