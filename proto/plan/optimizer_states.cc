#include "proto/plan/optimizer_states.h"

#include <algorithm>

#include "proto/base/check.h"
#include "proto/plan/optimizer_rules.h"

namespace troupe {
namespace {

// All that a rule may keep; the last is the average of weights.
absl::Span<const absl::string_view> StatesAndAverage(absl::string_view name,
                                                     double momentum) {
  static constexpr absl::string_view kAdamW[] = {"exp_avg", "exp_avg_sq",
                                                 kAverageState};
  static constexpr absl::string_view kLion[] = {"exp_avg", kAverageState};
  static constexpr absl::string_view kMomentum[] = {"momentum", kAverageState};
  static constexpr absl::string_view kNone[] = {kAverageState};
  if (name == "adamw") return kAdamW;
  if (name == "lion") return kLion;
  if (name == "muon") return kMomentum;
  if (name == "sgd" && momentum != 0) return kMomentum;
  if (name == "sgd") return kNone;
  return {};
}

absl::Span<const absl::string_view> StatesOf(absl::string_view name,
                                             double momentum, bool averages) {
  const auto all = StatesAndAverage(name, momentum);
  return averages || all.empty() ? all : all.first(all.size() - 1);
}

}  // namespace

absl::Span<const absl::string_view> StatesOfRule(const OptimizerSpec& optimizer,
                                                 int rule) {
  CHECK(rule >= 0 && rule < RuleCount(optimizer)) << rule;
  const bool averages = optimizer.has_ema();
  if (rule == 0) {
    return StatesOf(optimizer.name(), optimizer.momentum(), averages);
  }
  const OptimizerGroup& group = optimizer.groups(rule - 1);
  return StatesOf(group.name(), group.momentum(), averages);
}

absl::Span<const absl::string_view> StatesOfPart(const OptimizerSpec& optimizer,
                                                 const Unit::Part& part) {
  if (part.frozen()) return {};
  return StatesOfRule(optimizer, part.rule());
}

std::vector<absl::string_view> AllStates(const OptimizerSpec& optimizer) {
  std::vector<absl::string_view> all;
  for (int rule = 0; rule < RuleCount(optimizer); ++rule) {
    for (const absl::string_view state : StatesOfRule(optimizer, rule)) {
      const bool is_new = std::find(all.begin(), all.end(), state) == all.end();
      if (is_new) all.push_back(state);
    }
  }
  return all;
}

std::vector<Range> StateRanges(const OptimizerSpec& optimizer,
                               const Unit& unit) {
  std::vector<Range> ranges;
  int64_t end = 0;
  for (const Unit::Part& part : unit.parts()) {
    end += part.elements();
    const size_t states = StatesOfPart(optimizer, part).size();
    if (part.elements() == 0) continue;
    if (ranges.size() < states) ranges.resize(states);
    for (size_t s = 0; s < states; ++s) ranges[s].end = end;
  }
  return ranges;
}

int64_t StateElements(const OptimizerSpec& optimizer, const Unit& unit,
                      const Range& of) {
  int64_t elements = 0;
  for (const Range& state : StateRanges(optimizer, unit)) {
    elements += std::max<int64_t>(
        0, std::min(state.end, of.end) - std::max(state.begin, of.begin));
  }
  return elements;
}

}  // namespace troupe
