// SPLIT: the first section of x's columns, and the others, each on its own.
//
//   inputs   x     [..., first | others]
//   outputs  y     [..., first]
//            rest  [..., others]
#include "proto/plan/ops/kinds.h"

namespace troupe {

std::vector<OperandRule> SplitOperands() {
  return {{.name = "x", .dims = 3},
          {.name = "y", .output = true, .dims = 3, .sections = 1},
          {.name = "rest", .output = true, .dims = 3}};
}

OpRules SplitRules(const OpView& op) {
  OpRules rules;
  rules.gradients = {{"x", InputGradient::kNew}};
  const double bytes = 2 * Bytes(op.input("x"));
  rules.forward.set_memory_bytes(bytes);
  rules.backward_input.set_memory_bytes(bytes);
  return rules;
}

}  // namespace troupe
