#include "proto/plan/optimizer_rules.h"

#include <algorithm>

#include "proto/base/check.h"
#include "proto/base/glob.h"

namespace troupe {

int RuleOf(const OptimizerSpec& optimizer, absl::string_view parameter) {
  for (int g = optimizer.groups_size(); g-- > 0;) {
    const auto& patterns = optimizer.groups(g).match();
    const bool matches = std::any_of(patterns.begin(), patterns.end(),
                                     [parameter](const std::string& pattern) {
                                       return GlobMatches(pattern, parameter);
                                     });
    if (matches) return g + 1;
  }
  return 0;
}

OptimizerSpec SettingsOf(const OptimizerSpec& optimizer, int rule) {
  CHECK(rule >= 0 && rule < RuleCount(optimizer)) << rule;
  OptimizerSpec settings = optimizer;
  settings.clear_groups();
  if (rule == 0) return settings;
  const OptimizerGroup& group = optimizer.groups(rule - 1);
  settings.set_name(group.name());
  *settings.mutable_betas() = group.betas();
  settings.set_eps(group.eps());
  settings.set_momentum(group.momentum());
  settings.set_nesterov(group.nesterov());
  if (group.has_weight_decay()) {
    settings.set_weight_decay(group.weight_decay());
  }
  return settings;
}

double LearningRateScale(const OptimizerSpec& optimizer, int rule) {
  CHECK(rule >= 0 && rule < RuleCount(optimizer)) << rule;
  return rule == 0 ? 1 : optimizer.groups(rule - 1).lr_scale();
}

std::vector<RuleRange> RuleRanges(const Unit& unit) {
  std::vector<RuleRange> ranges;
  int64_t begin = 0;
  for (const Unit::Part& part : unit.parts()) {
    if (part.frozen()) break;
    const int64_t end = begin + part.elements();
    if (!ranges.empty() && ranges.back().rule == part.rule()) {
      ranges.back().range.end = end;
    } else if (end > begin) {
      ranges.push_back({{begin, end}, part.rule()});
    }
    begin = end;
  }
  return ranges;
}

}  // namespace troupe
