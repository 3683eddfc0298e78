#include "proto/plan/optimizer_rules.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/glob.h"
#include "proto/plan/slices.h"

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
  settings.set_decay_rate(group.decay_rate());
  settings.set_eps1(group.eps1());
  settings.set_eps2(group.eps2());
  settings.set_scale_parameter(group.scale_parameter());
  if (group.has_weight_decay()) {
    settings.set_weight_decay(group.weight_decay());
  }
  return settings;
}

double LearningRateScale(const OptimizerSpec& optimizer, int rule) {
  CHECK(rule >= 0 && rule < RuleCount(optimizer)) << rule;
  return rule == 0 ? 1 : optimizer.groups(rule - 1).lr_scale();
}

const std::string& NameOfRule(const OptimizerSpec& optimizer, int rule) {
  CHECK(rule >= 0 && rule < RuleCount(optimizer)) << rule;
  return rule == 0 ? optimizer.name() : optimizer.groups(rule - 1).name();
}

std::string NameFieldOfRule(int rule) {
  return rule == 0 ? "optimizer.name"
                   : absl::StrCat("optimizer.groups[", rule - 1, "].name");
}

const OptimizerRow& RowOfRule(const OptimizerSpec& optimizer, int rule) {
  static constexpr OptimizerRow kNothing = {.name = "none"};
  const OptimizerRow* const row = FindOptimizerRow(NameOfRule(optimizer, rule));
  return row == nullptr ? kNothing : *row;
}

bool UpdatesMatrices(const OptimizerSpec& optimizer, int rule) {
  return RowOfRule(optimizer, rule).updates != OptimizerRow::kElements;
}

bool UpdatesVectors(const OptimizerSpec& optimizer, int rule) {
  return RowOfRule(optimizer, rule).updates == OptimizerRow::kParameters;
}

Matrices MatricesOf(const Parameter& parameter) {
  const std::vector<int64_t> shape = LocalShape(parameter);
  CHECK(!shape.empty() && shape.size() <= 3) << parameter.name();
  return {.count = shape.size() == 3 ? shape[0] : 1,
          .rows = shape.size() == 1 ? 1 : shape[shape.size() - 2],
          .columns = shape.back()};
}

int64_t StepWorkspaceBytes(const OptimizerSpec& optimizer, const Unit& unit) {
  int64_t elements = 0;
  for (const RuleRange& range : RuleRanges(unit)) {
    const auto workspace = RowOfRule(optimizer, range.rule).workspace;
    if (workspace == nullptr) continue;
    for (const Parameter& parameter : unit.parameters()) {
      if (parameter.offset() < range.range.begin ||
          parameter.offset() >= range.range.end) {
        continue;
      }
      const auto [count, rows, columns] = MatricesOf(parameter);
      elements = std::max(elements, workspace(rows, columns));
    }
  }
  return elements * static_cast<int64_t>(sizeof(float));
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
