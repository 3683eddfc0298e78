#include "worker/rank/thawed.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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

// The bias correction counts the job's steps, not the parameter's: after many
// of them m = (1 - beta1) g and v = (1 - beta2) g^2 are not corrected.
std::string FirstUpdate(const OptimizerSpec& optimizer) {
  if (optimizer.name() != "adamw") return "";
  const double times =
      (1 - optimizer.betas(0)) / std::sqrt(1 - optimizer.betas(1));
  return absl::StrFormat(
      ", and their first update is %.2g times the learning rate%s", times,
      times > 1 ? ", the next ones more: consider a lower optimizer.lr, or "
                  "begin anew with model.hf"
                : "");
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
                      " frozen there begin at zero",
                      FirstUpdate(plan.job().optimizer()));
}

}  // namespace troupe
