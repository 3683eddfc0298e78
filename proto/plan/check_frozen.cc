#include "proto/plan/check_frozen.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/glob.h"
#include "proto/base/status.h"
#include "proto/plan/ops/op_rules.h"
#include "proto/plan/parameter_of.h"
#include "proto/plan/ports.h"
#include "proto/plan/slices.h"
#include "proto/plan/statistics.h"

namespace troupe {
namespace {

absl::Status Fault(int unit, absl::string_view what) {
  return absl::FailedPreconditionError(absl::StrCat("unit ", unit, ": ", what));
}

bool IsNamed(const Plan& plan, const std::string& name) {
  const auto& patterns = plan.job().training().freeze();
  return std::any_of(patterns.begin(), patterns.end(),
                     [&name](const std::string& pattern) {
                       return GlobMatches(pattern, name);
                     });
}

// What follows from the job: with `evaluate` all are frozen. A state that is
// updated by loads may be frozen for reasons of its own, too (a rate of 0).
bool MayBe(const Plan& plan, const Parameter& parameter) {
  const bool by_adapters = plan.job().training().has_lora() &&
                           !parameter.adapter() && !parameter.has_load();
  const bool frozen =
      by_adapters || plan.job().evaluate() || IsNamed(plan, parameter.name());
  return parameter.frozen() == frozen ||
         (parameter.frozen() && parameter.has_load());
}

absl::Status CheckParameters(const Plan& plan, int index) {
  const Unit& unit = plan.units(index);
  for (const Parameter& parameter : unit.parameters()) {
    if (MayBe(plan, parameter)) continue;
    return Fault(
        index,
        absl::StrCat(parameter.name(), " is ",
                     parameter.frozen() ? "frozen" : "trained",
                     ", and training.freeze and training.lora say otherwise"));
  }
  bool frozen = false;  // a part so far
  for (int p = 0; p < unit.parts_size(); ++p) {
    if (frozen && !unit.parts(p).frozen()) {
      return Fault(index, absl::StrCat("part ", p,
                                       " is trained, and behind a frozen one"));
    }
    frozen = unit.parts(p).frozen();
    const Range range = RangeOfPart(unit, p);
    for (const Parameter& parameter : unit.parameters()) {
      const bool within =
          parameter.offset() >= range.begin && parameter.offset() < range.end;
      if (!within || parameter.frozen() == frozen) continue;
      return Fault(index, absl::StrCat(parameter.name(), " is ",
                                       frozen ? "trained" : "frozen",
                                       ", but not its part ", p));
    }
  }
  return absl::OkStatus();
}

// By output of a unit: whether it depends on something that is trained.
using Depends = std::vector<bool>;

// Follows the forward pass; `before`: of all units before this one.
absl::StatusOr<Depends> CheckTable(const Plan& plan, int index,
                                   const std::vector<Depends>& before) {
  const Unit& unit = plan.units(index);
  const UnitTable& table = plan.tables(unit.table());
  std::vector<bool> depends(table.tensors_size(), false);
  const std::vector<int> inputs = TensorsOfHome(table, TensorSpec::INPUT);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Unit::Source& source = unit.inputs(static_cast<int>(i));
    depends[inputs[i]] = before[source.unit()][source.output()];
  }
  for (const Op& op : table.ops()) {
    bool made_so = false;
    for (const int parameter : op.parameters()) {
      const bool frozen = ParameterOf(plan.units(), unit, parameter).frozen();
      const auto& said = op.frozen_parameters();
      if (frozen != (std::count(said.begin(), said.end(), parameter) > 0)) {
        return Fault(index,
                     absl::StrCat(Op::Kind_Name(op.kind()), " uses parameter ",
                                  parameter, " as if it were ",
                                  frozen ? "trained" : "frozen"));
      }
      made_so |= !frozen;
    }
    for (const Op::Operand& input : op.inputs()) {
      made_so |= depends[input.tensor()];
    }
    for (const Op::Operand& output : op.outputs()) {
      depends[output.tensor()] = made_so;
    }
  }
  for (int t = 0; t < table.tensors_size(); ++t) {
    const TensorSpec& tensor = table.tensors(t);
    if (depends[t] && tensor.no_gradient() && IsDifferentiated(tensor)) {
      return Fault(index, absl::StrCat(tensor.name(),
                                       " has no gradient, though parameters "
                                       "before it are trained"));
    }
  }
  Depends outputs;
  for (const int t : TensorsOfHome(table, TensorSpec::OUTPUT)) {
    outputs.push_back(depends[t]);
  }
  return outputs;
}

}  // namespace

absl::Status CheckFrozen(const Plan& plan) {
  std::vector<Depends> depends;
  for (int u = 0; u < plan.units_size(); ++u) {
    RETURN_IF_ERROR(CheckParameters(plan, u));
    if (!plan.units(u).has_table()) {
      depends.push_back({true});  // it has gradients whatever it holds
      continue;
    }
    ASSIGN_OR_RETURN(Depends outputs, CheckTable(plan, u, depends));
    depends.push_back(std::move(outputs));
  }
  return absl::OkStatus();
}

}  // namespace troupe
