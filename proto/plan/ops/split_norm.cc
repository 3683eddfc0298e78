// SPLIT_NORM: a NORM without a residual of rows that are cut by columns, which
// is told their row sums. Each rank has a summand of the row sums' gradients.
//
//   inputs      x        [..., hidden]
//               row_sums  [..., 2], f64: ROW_SUMS, summed over the ranks
//   outputs     y        [..., hidden]
//               mean     [...], f32; LayerNorm only
//               rstd     [...], f32
//   parameters  weight, and LayerNorm's bias
#include "proto/plan/ops/kinds.h"

namespace troupe {

std::vector<OperandRule> SplitNormOperands() {
  return {{.name = "x"},
          {.name = "row_sums"},
          {.name = "y", .output = true},
          {.name = "mean", .output = true, .optional = true},
          {.name = "rstd", .output = true}};
}

OpRules SplitNormRules(const OpView& op) {
  const double bytes = Bytes(op.output("y"));
  OpRules rules;
  // ROW_SUMS reads x, too, and its gradient is added to this one.
  rules.gradients = {{"x", InputGradient::kNewSum},
                     {"row_sums", InputGradient::kNew}};
  rules.backward_input_reads = {"x", "mean", "rstd"};
  rules.backward_weight_reads = rules.backward_input_reads;
  rules.forward.set_memory_bytes(2.0 * bytes);
  rules.backward_input.set_memory_bytes(4.0 * bytes);
  rules.backward_weight.set_memory_bytes(2.0 * bytes);
  return rules;
}

OpCut SplitNormCut(const OpView& op, const Wishes& wishes) {
  // All lie as x does; of rows that are cut by columns each rank has what is
  // one of a row.
  const AxisCut& x = wishes.tensors[op.Input("x")];
  const bool by_columns = CutsColumns(op.input("x"), x);
  constexpr AxisCut kSummand = {.placement = Layout::PARTIAL};
  OpCut cut = {.sums_parameters = x.placement == Layout::SHARD};
  for (const Op::Operand& input : op.op().inputs()) {
    const bool of_row = by_columns && input.name() == "row_sums";
    cut.inputs.push_back(of_row ? TensorCut{{}, kSummand} : TensorCut{x, x});
  }
  for (const Op::Operand& output : op.op().outputs()) {
    const bool of_row = by_columns && output.name() != "y";
    cut.outputs.push_back(of_row ? TensorCut{} : TensorCut{x, x});
  }
  return cut;
}

}  // namespace troupe
