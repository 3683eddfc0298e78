// SPLIT_NORM: a NORM without a residual of rows that are cut by columns, which
// is told their moments. Each rank has a summand of the moments' gradients.
//
//   inputs      x        [..., hidden]
//               moments  [..., 2], f64: MOMENTS, summed over the ranks
//   outputs     y        [..., hidden]
//               mean     [...], f32; LayerNorm only
//               rstd     [...], f32
//   parameters  weight, and LayerNorm's bias
#include "proto/plan/ops/kinds.h"

namespace troupe {

std::vector<OperandRule> SplitNormOperands() {
  return {{.name = "x"},
          {.name = "moments"},
          {.name = "y", .output = true},
          {.name = "mean", .output = true, .optional = true},
          {.name = "rstd", .output = true}};
}

OpRules SplitNormRules(const OpView& op) {
  const double bytes = Bytes(op.output("y"));
  OpRules rules;
  // MOMENTS reads x, too, and its gradient is added to this one.
  rules.gradients = {{"x", InputGradient::kNewSum},
                     {"moments", InputGradient::kNew}};
  rules.backward_input_reads = {"x", "mean", "rstd"};
  rules.backward_weight_reads = rules.backward_input_reads;
  rules.forward.set_memory_bytes(2.0 * bytes);
  rules.backward_input.set_memory_bytes(4.0 * bytes);
  rules.backward_weight.set_memory_bytes(2.0 * bytes);
  return rules;
}

OpCut SplitNormCut(const OpView& op, const Wishes& wishes) {
  OpCut cut = NormCut(op, wishes);
  const AxisCut& x = wishes.tensors[op.Input("x")];
  if (!CutsColumns(op.input("x"), x)) return cut;
  constexpr AxisCut kSummand = {.placement = Layout::PARTIAL};
  for (int i = 0; i < op.op().inputs_size(); ++i) {
    if (op.op().inputs(i).name() == "moments") cut.inputs[i] = {{}, kSummand};
  }
  return cut;
}

}  // namespace troupe
