// LINEAR: y = x W + b. Several weights make a section of columns each. Cut over
// ranks by columns, each needs all of x and has a summand of its gradient; cut
// by rows, each has a summand of y, to which the first one adds the bias (arXiv
// 1909.08053, section 3).
//
//   inputs      x  [..., in]
//   outputs     y  [..., out]
//   parameters  the weights, then, with `bias`, their biases
#include "proto/base/check.h"
#include "proto/plan/ops/kinds.h"

namespace troupe {

std::vector<OperandRule> LinearOperands() {
  return {{.name = "x"}, {.name = "y", .output = true}};
}

OpRules LinearRules(const OpView& op) {
  const TensorSpec& x = op.input("x");
  const TensorSpec& y = op.output("y");
  const double flops = 2.0 * Elements(x) * Columns(y);
  OpRules rules;
  rules.gradients = {{"x", InputGradient::kNew}};
  rules.backward_weight_reads = {"x"};
  rules.forward.set_matmul_flops(flops);
  rules.backward_input.set_matmul_flops(flops);
  rules.backward_weight.set_matmul_flops(flops);
  if (op.op().linear().bias()) {
    rules.backward_weight.set_memory_bytes(Bytes(y));
  }
  return rules;
}

OpCut LinearCut(const OpView& op, const Wishes& wishes) {
  constexpr AxisCut kWhole;
  constexpr AxisCut kSummand = {.placement = Layout::PARTIAL};
  const AxisCut& x = wishes.tensors[op.Input("x")];
  const AxisCut& y = wishes.tensors[op.Output("y")];
  const bool by_rows = CutsColumns(op.input("x"), x);
  const bool by_columns = CutsColumns(op.output("y"), y);
  CHECK(!by_rows || !by_columns) << "both sides of a product are cut";
  if (by_columns) {
    return {.inputs = {{kWhole, kSummand}}, .outputs = {{y, y}}};
  }
  if (by_rows) {
    return {.inputs = {{x, x}}, .outputs = {{kSummand, kWhole}}};
  }
  return {.inputs = {{x, x}},
          .outputs = {{y, y}},
          .sums_parameters = y.placement == Layout::SHARD};
}

}  // namespace troupe
