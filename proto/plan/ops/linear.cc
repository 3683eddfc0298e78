// LINEAR: y = x W + b. Several weights make a section of columns each.
//
//   inputs      x  [..., in]
//   outputs     y  [..., out]
//   parameters  the weights, then, with `bias`, their biases
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

}  // namespace troupe
