#include "scheduler/layouts/optimizer_groups.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/optimizer_rules.h"
#include "scheduler/layouts/name_patterns.h"

namespace troupe {
namespace {

std::string FieldOf(int group) {
  return absl::StrCat("optimizer.groups[", group, "].match");
}

absl::Status CheckPatterns(const OptimizerSpec& optimizer,
                           const std::vector<std::string>& names) {
  std::vector<bool> used(RuleCount(optimizer), false);
  for (const std::string& name : names) used[RuleOf(optimizer, name)] = true;
  for (int g = 0; g < optimizer.groups_size(); ++g) {
    for (const std::string& pattern : optimizer.groups(g).match()) {
      RETURN_IF_ERROR(CheckMatchesSome(FieldOf(g), pattern, names));
    }
    if (used[g + 1]) continue;
    return FieldError(FieldOf(g),
                      "later groups match all of its parameters too, and a "
                      "parameter is in the last group that matches it; leave "
                      "the group out, or put it behind them");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MarkGroups(const OptimizerSpec& optimizer, UnitList& units) {
  if (optimizer.groups().empty()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckPatterns(optimizer, ParameterNames(units)));
  for (Unit& unit : units.units) {
    for (Parameter& parameter : *unit.mutable_parameters()) {
      const int rule = RuleOf(optimizer, parameter.name());
      if (rule == 0) continue;
      const OptimizerGroup& group = optimizer.groups(rule - 1);
      if (!group.has_weight_decay()) continue;
      parameter.set_weight_decay(group.weight_decay() > 0);
    }
  }
  return absl::OkStatus();
}

}  // namespace troupe
