#include "worker/rank/thawed.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/glob.h"
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

}  // namespace

bool StateWasFrozen(const JobSpec& saved, absl::string_view state_tensor) {
  for (const absl::string_view state : OptimizerStates(saved.optimizer())) {
    absl::string_view name = state_tensor;
    if (absl::ConsumePrefix(&name, StateTensorName(state, ""))) {
      return WasFrozen(saved, name);
    }
  }
  return false;
}

std::string StatesThatBegin(const JobSpec& saved, const Plan& plan) {
  if (OptimizerStates(plan.job().optimizer()).empty()) return "";
  int tensors = 0;
  for (const Unit& unit : plan.units()) {
    for (const Parameter& parameter : unit.parameters()) {
      if (!parameter.frozen() && WasFrozen(saved, parameter.name())) ++tensors;
    }
  }
  if (tensors == 0) return "";
  return absl::StrCat("the optimizer's states of ", tensors,
                      tensors == 1 ? " tensor that was" : " tensors that were",
                      " frozen there begin at zero");
}

}  // namespace troupe
