// SWIGLU: y = silu(gate) * up (Shazeer, arXiv 2002.05202).
//
//   inputs   gate_up  [..., intermediate | intermediate]
//   outputs  y        [..., intermediate]
#include "proto/plan/ops/kinds.h"

namespace troupe {

std::vector<OperandRule> SwiGluOperands() {
  return {{.name = "gate_up", .dims = 3, .sections = 2},
          {.name = "y", .output = true, .dims = 3}};
}

OpRules SwiGluRules(const OpView& op) {
  const TensorSpec& y = op.output("y");
  OpRules rules;
  rules.gradients = {{"gate_up", InputGradient::kNew}};
  rules.backward_input_reads = {"gate_up"};
  rules.forward.set_memory_bytes(3.0 * Bytes(y));
  rules.forward.set_elementwise_ops(Elements(y));
  // Reads both and y's gradient, and writes theirs.
  rules.backward_input.set_memory_bytes(5.0 * Bytes(y));
  rules.backward_input.set_elementwise_ops(Elements(y));
  return rules;
}

}  // namespace troupe
