#include "worker/rank/thawed.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "proto/base/glob.h"
#include "proto/plan/optimizer_rules.h"
#include "proto/plan/optimizer_states.h"

namespace troupe {
namespace {

// Whether the job that wrote a checkpoint did not train the parameter.
bool WasFrozen(const JobSpec& saved, absl::string_view name) {
  const auto& patterns = saved.training().freeze();
  return std::any_of(patterns.begin(), patterns.end(),
                     [name](const std::string& pattern) {
                       return GlobMatches(pattern, name);
                     });
}

// The bias correction counts the job's steps, not the parameter's: after many
// of them m = (1 - beta1) g and v = (1 - beta2) g^2 are not corrected. In
// learning rates; 0: the rule has none to correct.
double FirstUpdate(const OptimizerSpec& optimizer, int rule) {
  if (!RowOfRule(optimizer, rule).corrects_first_steps) return 0;
  const OptimizerSpec settings = SettingsOf(optimizer, rule);
  return (1 - settings.betas(0)) / std::sqrt(1 - settings.betas(1));
}

std::string FirstUpdateText(double times) {
  if (times == 0) return "";
  return absl::StrFormat(
      ", and their first update is %.2g times the learning rate%s", times,
      times > 1 ? ", the next ones more: consider a lower optimizer.lr, or "
                  "begin anew with model.hf"
                : "");
}

}  // namespace

bool StateWasFrozen(const JobSpec& saved, absl::string_view state_tensor) {
  for (const absl::string_view state : AllStates(saved.optimizer())) {
    absl::string_view name = state_tensor;
    if (absl::ConsumePrefix(&name, StateTensorName(state, ""))) {
      return WasFrozen(saved, name);
    }
  }
  return false;
}

std::string StatesThatBegin(const JobSpec& saved, const Plan& plan) {
  const OptimizerSpec& optimizer = plan.job().optimizer();
  int tensors = 0;
  double first_update = 0;  // the largest
  for (const Unit& unit : plan.units()) {
    for (const Parameter& parameter : unit.parameters()) {
      const int rule = RuleOf(optimizer, parameter.name());
      if (parameter.frozen() || !WasFrozen(saved, parameter.name()) ||
          StatesOfRule(optimizer, rule).empty()) {
        continue;
      }
      ++tensors;
      first_update = std::max(first_update, FirstUpdate(optimizer, rule));
    }
  }
  if (tensors == 0) return "";
  return absl::StrCat("the optimizer's states of ", tensors,
                      tensors == 1 ? " tensor that was" : " tensors that were",
                      " frozen there begin at zero",
                      FirstUpdateText(first_update));
}

}  // namespace troupe
