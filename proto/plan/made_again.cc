#include "proto/plan/made_again.h"

#include <algorithm>

#include "proto/base/check.h"
#include "proto/plan/ports.h"

namespace troupe {
namespace {

bool IsByForward(const OpRules& rules) {
  return !rules.gradients.empty() &&
         rules.gradients[0].rule == InputGradient::kByForward;
}

class Closure {
 public:
  Closure(const UnitTable& table, const std::vector<OpRules>& rules,
          const std::vector<bool>& read)
      : table_(table),
        rules_(rules),
        read_(read),
        returned_(ReturnedInBackward(table)) {
    made_.ops.assign(table.ops_size(), Again::kNo);
    made_.tensors.assign(table.tensors_size(), false);
  }

  MadeAgain Run() {
    for (int t = 0; t < table_.tensors_size(); ++t) {
      const TensorSpec& tensor = table_.tensors(t);
      const bool missing = read_[t] && tensor.again() && !returned_[t];
      if (missing && tensor.home() == TensorSpec::WITHIN) {
        Make(t);
      }
    }
    return std::move(made_);
  }

 private:
  // Whether it is there until the backward passes.
  bool IsThere(int tensor) const {
    switch (table_.tensors(tensor).home()) {
      case TensorSpec::INPUT:
      case TensorSpec::BATCH:
        return true;
      default:
        break;
    }
    // What is handed on of an input is that.
    if (table_.tensors(SameAs(table_, tensor)).home() == TensorSpec::INPUT) {
      return true;
    }
    return read_[tensor] && !table_.tensors(tensor).again() &&
           !returned_[tensor];
  }

  void Make(int tensor) {
    if (made_.tensors[tensor] || IsThere(tensor)) return;
    const int maker = MakerOf(table_, tensor);
    CHECK_GE(maker, 0) << table_.tensors(tensor).name();
    RunAgain(maker);
    // An op that writes a gradient over it does so again.
    for (int op = maker + 1; op < table_.ops_size(); ++op) {
      const bool over =
          IsByForward(rules_[op]) &&
          TensorOf(table_, op, rules_[op].gradients[0].input) == tensor;
      if (over) RunAgain(op);
    }
  }

  void RunAgain(int op) {
    if (made_.ops[op] != Again::kNo) return;
    const std::vector<std::string>& apart = rules_[op].apart_reads;
    const bool is_apart =
        !apart.empty() &&
        std::all_of(apart.begin(), apart.end(), [&](const std::string& name) {
          return IsThere(TensorOf(table_, op, name));
        });
    made_.ops[op] = is_apart ? Again::kApart : Again::kAsForward;
    const std::vector<int> reads =
        ReadAgain(table_, op, rules_[op], made_.ops[op]);
    for (const Op::Operand& output : table_.ops(op).outputs()) {
      const bool from_it =
          is_apart && std::count(reads.begin(), reads.end(), output.tensor());
      if (!from_it) made_.tensors[output.tensor()] = true;
    }
    for (const int tensor : reads) {
      if (!IsThere(tensor)) Make(tensor);
    }
    // An op writes what a fused one behind it makes, beside its own output.
    const int next = op + 1;
    if (next < table_.ops_size() && table_.ops(next).fused() &&
        rules_[next].fusion.forward_by_maker && rules_[next].in_place.empty()) {
      RunAgain(next);
    }
  }

  const UnitTable& table_;
  const std::vector<OpRules>& rules_;
  const std::vector<bool>& read_;
  const std::vector<bool> returned_;
  MadeAgain made_;
};

}  // namespace

MadeAgain WhatIsMadeAgain(const UnitTable& table,
                          const std::vector<OpRules>& rules,
                          const std::vector<bool>& read) {
  return Closure(table, rules, read).Run();
}

std::vector<bool> ReadByBackward(const UnitTable& table,
                                 const std::vector<OpRules>& rules) {
  std::vector<bool> read(table.tensors_size(), false);
  for (int op = 0; op < table.ops_size(); ++op) {
    for (const auto* names :
         {&rules[op].backward_input_reads, &rules[op].backward_weight_reads}) {
      for (const std::string& name : *names) {
        const int tensor = TensorOf(table, op, name);
        if (tensor >= 0) read[tensor] = true;
      }
    }
    if (IsByForward(rules[op])) {
      read[TensorOf(table, op, rules[op].gradients[0].input)] = true;
    }
    // What is to be broadcast again, its root has until then.
    const Op& spec = table.ops(op);
    if (spec.kind() == Op::RETURN && spec.exchange().backward() == BROADCAST) {
      read[spec.inputs(1).tensor()] = true;
    }
  }
  return read;
}

std::vector<bool> ReturnedInBackward(const UnitTable& table) {
  std::vector<bool> returned(table.tensors_size(), false);
  for (const Op& op : table.ops()) {
    if (op.kind() == Op::RETURN) returned[op.inputs(0).tensor()] = true;
  }
  return returned;
}

std::vector<int> ReadAgain(const UnitTable& table, int op, const OpRules& rules,
                           Again again) {
  std::vector<int> tensors;
  if (again == Again::kApart) {
    for (const std::string& name : rules.apart_reads) {
      tensors.push_back(TensorOf(table, op, name));
    }
  } else if (again == Again::kAsForward) {
    for (const Op::Operand& input : table.ops(op).inputs()) {
      tensors.push_back(input.tensor());
    }
  }
  return tensors;
}

int TensorOf(const UnitTable& table, int op, absl::string_view name) {
  const OpView view(table, table.ops(op));
  const int input = view.Input(name);
  if (input >= 0) return input;
  const int output = view.Output(name);
  return output >= 0 ? output : view.BackwardInput(name);
}

int MakerOf(const UnitTable& table, int tensor) {
  for (int op = 0; op < table.ops_size(); ++op) {
    for (const Op::Operand& output : table.ops(op).outputs()) {
      if (output.tensor() == tensor) return op;
    }
  }
  return -1;
}

int ComputesMeanwhile(const UnitTable& table, int exchange) {
  if (table.ops(exchange).exchange().forward() != BROADCAST) return -1;
  const int panel = table.ops(exchange).outputs(0).tensor();
  for (const Op& op : table.ops()) {
    if (!RulesOf({table, op}).in_panels) continue;
    const OpView product(table, op);
    if (product.Input("x") != panel && product.Input("w") != panel) continue;
    return MakerOf(table, product.Input("y before"));
  }
  return -1;
}

}  // namespace troupe
