#include "scheduler/layouts/freeze.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/glob.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/model.h"
#include "proto/plan/ops/op_rules.h"
#include "proto/plan/parameter_of.h"
#include "proto/plan/ports.h"
#include "proto/plan/slices.h"
#include "proto/plan/tensor_spec.h"
#include "scheduler/layouts/name_patterns.h"

namespace troupe {
namespace {

constexpr char kFreezeField[] = "training.freeze";

bool IsFrozen(const Unit& unit) {
  return std::any_of(
      unit.parameters().begin(), unit.parameters().end(),
      [](const Parameter& parameter) { return parameter.frozen(); });
}

bool AnyFrozen(const UnitList& units) {
  return std::any_of(units.units.begin(), units.units.end(), IsFrozen);
}

// Which tensors of a table have a gradient, found in forward order.
class Needs {
 public:
  // `inputs`: which of the unit's inputs have one.
  Needs(const std::vector<bool>& inputs, UnitTable& table)
      : table_(table), needed_(table.tensors_size(), false) {
    const std::vector<int> ports = TensorsOfHome(table, TensorSpec::INPUT);
    for (size_t i = 0; i < ports.size(); ++i) needed_[ports[i]] = inputs.at(i);
    for (int op = 0; op < table.ops_size(); ++op) Follow(op);
  }

  void Mark() {
    for (int t = 0; t < table_.tensors_size(); ++t) {
      table_.mutable_tensors(t)->set_no_gradient(!needed_[t]);
    }
    for (Op& op : *table_.mutable_ops()) {
      if (op.kind() != Op::EXCHANGE || needed_[op.inputs(0).tensor()]) continue;
      op.mutable_exchange()->clear_backward();
    }
    RemoveReturns();
  }

  // By output of the unit.
  std::vector<bool> OfOutputs() const {
    std::vector<bool> outputs;
    for (const int t : TensorsOfHome(table_, TensorSpec::OUTPUT)) {
      outputs.push_back(needed_[t]);
    }
    return outputs;
  }

 private:
  void Follow(int index) {
    const OpView op(table_, table_.ops(index));
    bool needs = TrainsAny(op.op());
    const std::vector<InputGradient> gradients = RulesOf(op).gradients;
    for (const InputGradient& gradient : gradients) {
      needs |= needed_[op.Input(gradient.input)];
    }
    for (const Op::Operand& output : op.op().outputs()) {
      needed_[output.tensor()] = needs;
    }
    // A gradient that lies in another one, which is then made as well.
    for (const InputGradient& gradient : gradients) {
      if (gradient.rule != InputGradient::kOfInput) continue;
      if (needed_[op.Input(gradient.input)])
        needed_[op.Input(gradient.of)] = true;
    }
  }

  // Those of values that no backward pass reads, or sends on.
  void RemoveReturns() {
    std::set<int> wanted;  // tensors
    for (const Op& op : table_.ops()) {
      const OpView view(table_, op);
      const OpRules rules = RulesOf(view);
      for (const auto* names :
           {&rules.backward_input_reads, &rules.backward_weight_reads}) {
        for (const std::string& name : *names) {
          wanted.insert(
              {view.Input(name), view.Output(name), view.BackwardInput(name)});
        }
      }
    }
    UnitTable kept;
    for (Op& op : *table_.mutable_ops()) {
      if (op.kind() == Op::RETURN) {
        if (wanted.count(op.inputs(0).tensor()) == 0) continue;
        wanted.insert(op.inputs(1).tensor());
      }
      *kept.add_ops() = std::move(op);
    }
    table_.mutable_ops()->Swap(kept.mutable_ops());
  }

  UnitTable& table_;
  std::vector<bool> needed_;  // by tensor
};

void MarkParameters(const std::vector<Unit>& units, const Unit& unit,
                    UnitTable& table) {
  for (Op& op : *table.mutable_ops()) {
    op.clear_frozen_parameters();
    for (const int parameter : op.parameters()) {
      if (!ParameterOf(units, unit, parameter).frozen()) continue;
      op.add_frozen_parameters(parameter);
    }
  }
}

// Gives each unit a table that says what of it is frozen.
void MarkTables(UnitList& list) {
  std::vector<UnitTable> tables;
  std::string last;  // the table behind them all, as text
  std::vector<std::vector<bool>> needed;  // by unit and output
  for (Unit& unit : list.units) {
    std::vector<bool>& outputs = needed.emplace_back();
    if (!unit.has_table()) continue;
    UnitTable table = list.tables[unit.table()];
    MarkParameters(list.units, unit, table);
    std::vector<bool> inputs;
    for (const Unit::Source& source : unit.inputs()) {
      inputs.push_back(needed[source.unit()][source.output()]);
    }
    Needs needs(inputs, table);
    outputs = needs.OfOutputs();
    needs.Mark();
    std::string text = table.SerializeAsString();
    if (text != last) {
      tables.push_back(std::move(table));
      last = std::move(text);
    }
    unit.set_table(static_cast<int>(tables.size()) - 1);
  }
  list.tables = std::move(tables);
}

double FlopsOf(const UnitList& units) {
  double flops = 0;
  for (const Unit& unit : units.units) {
    for (const Work* const work :
         {&unit.forward(), &unit.backward_input(), &unit.backward_weight()}) {
      flops += work->matmul_flops() + work->attention_flops();
    }
  }
  return flops;
}

}  // namespace

absl::Status MarkFrozen(const TrainingSpec& training, UnitList& units) {
  if (training.freeze().empty()) return absl::OkStatus();
  const std::vector<std::string> names = ParameterNames(units);
  for (const std::string& pattern : training.freeze()) {
    RETURN_IF_ERROR(CheckMatchesSome(kFreezeField, pattern, names));
  }
  bool trained = false;
  for (Unit& unit : units.units) {
    for (Parameter& parameter : *unit.mutable_parameters()) {
      parameter.set_frozen(
          parameter.frozen() ||
          std::any_of(training.freeze().begin(), training.freeze().end(),
                      [&parameter](const std::string& pattern) {
                        return GlobMatches(pattern, parameter.name());
                      }));
      trained |= !parameter.frozen();
    }
  }
  if (trained) return absl::OkStatus();
  return FieldError(kFreezeField,
                    absl::StrCat("matches all ", names.size(),
                                 " parameters, so that nothing is trained; "
                                 "leave some out"));
}

void FreezeAll(UnitList& units) {
  for (Unit& unit : units.units) {
    for (Parameter& parameter : *unit.mutable_parameters()) {
      parameter.set_frozen(true);
    }
  }
}

int64_t FrozenCount(const UnitList& units) {
  int64_t elements = 0;
  for (const Unit& unit : units.units) {
    for (const Parameter& parameter : unit.parameters()) {
      if (parameter.frozen() && !parameter.has_load()) {
        elements += ElementsOf(parameter);
      }
    }
  }
  return elements;
}

double TrainedWorkShare(const UnitList& units) {
  if (!AnyFrozen(units)) return 1;
  const double all = FlopsOf(units);
  if (all == 0) return 1;
  UnitList marked = units;
  LayFrozen(marked);
  return FlopsOf(marked) / all;
}

void LayFrozen(UnitList& units) {
  if (!AnyFrozen(units)) return;
  MarkTables(units);
  units.Derive();
}

}  // namespace troupe
