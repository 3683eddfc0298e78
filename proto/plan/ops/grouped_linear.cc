// GROUPED_LINEAR: y = x W[e] of the rows of each expert e
// (ops/grouped_matmul.h). Several weights make a section of columns each. Cut
// over ranks by columns or by rows it is as a LINEAR.
//
//   inputs      x        [batch, sequence, choices, in], expert by expert
//               offsets  [experts + 1], i32: the first row of each expert
//   outputs     y        [batch, sequence, choices, out]
//   parameters  the weights, [experts, out, in]
#include "proto/base/check.h"
#include "proto/plan/ops/kinds.h"

namespace troupe {

std::vector<OperandRule> GroupedLinearOperands() {
  return {{.name = "x", .dims = 4},
          {.name = "offsets", .dims = 1},
          {.name = "y", .output = true, .dims = 4}};
}

OpRules GroupedLinearRules(const OpView& op) {
  const TensorSpec& y = op.output("y");
  const double flops = 2.0 * Elements(op.input("x")) * Columns(y);
  double trained = 0;
  for (int i = 0; i < op.op().parameters_size(); ++i) {
    if (Trains(op.op(), i)) trained += 1.0 / op.op().parameters_size();
  }
  OpRules rules;
  rules.gradients = {{"x", InputGradient::kNew}};
  rules.backward_input_reads = {"offsets"};
  if (trained > 0) rules.backward_weight_reads = {"x", "offsets"};
  rules.forward.set_matmul_flops(flops);
  rules.backward_input.set_matmul_flops(flops);
  rules.backward_weight.set_matmul_flops(trained * flops);
  return rules;
}

OpCut GroupedLinearCut(const OpView& op, const Wishes& wishes) {
  constexpr TensorCut kWhole;
  constexpr AxisCut kSummand = {.placement = Layout::PARTIAL};
  const AxisCut& x = wishes.tensors[op.Input("x")];
  const AxisCut& y = wishes.tensors[op.Output("y")];
  const bool by_rows = CutsColumns(op.input("x"), x);
  const bool by_columns = CutsColumns(op.output("y"), y);
  CHECK(!by_rows || !by_columns) << "both sides of a product are cut";
  if (by_columns) {
    return {.inputs = {{.value = {}, .gradient = kSummand}, kWhole},
            .outputs = {{y, y}}};
  }
  if (by_rows) {
    return {.inputs = {{x, x}, kWhole},
            .outputs = {{.value = kSummand, .gradient = {}}}};
  }
  return {.inputs = {{x, x}, kWhole},
          .outputs = {{y, y}},
          .sums_parameters = y.placement == Layout::SHARD};
}

}  // namespace troupe
