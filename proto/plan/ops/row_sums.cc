// ROW_SUMS: of each row the sum of its elements and of their squares, f64, from
// which SPLIT_NORM has mean and variance. Of rows that are cut by columns each
// rank has summands.
//
//   inputs   x  [..., hidden]
//   outputs  y  [..., 2], f64
#include "proto/plan/ops/kinds.h"

namespace troupe {

std::vector<OperandRule> RowSumsOperands() {
  return {{.name = "x"}, {.name = "y", .output = true}};
}

OpRules RowSumsRules(const OpView& op) {
  const double bytes = Bytes(op.input("x"));
  const bool added = op.IsReadElsewhere(op.Input("x"));
  OpRules rules;
  rules.gradients = {{"x", InputGradient::kNewSum}};
  rules.backward_input_reads = {"x"};
  rules.forward.set_memory_bytes(bytes);
  rules.backward_input.set_memory_bytes((added ? 3.0 : 2.0) * bytes);
  return rules;
}

OpCut RowSumsCut(const OpView& op, const Wishes& wishes) {
  const AxisCut& x = wishes.tensors[op.Input("x")];
  if (!CutsColumns(op.input("x"), x)) {
    return {.inputs = {{x, x}}, .outputs = {{x, x}}};
  }
  constexpr AxisCut kSummand = {.placement = Layout::PARTIAL};
  return {.inputs = {{x, x}}, .outputs = {{kSummand, {}}}};
}

}  // namespace troupe
