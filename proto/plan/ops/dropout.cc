// DROPOUT: y = x under a mask. Its work is not counted: masks are cheap beside
// the passes that they ride on.
//
//   inputs   x
//   outputs  y
#include "proto/plan/ops/kinds.h"

namespace troupe {

std::vector<OperandRule> DropoutOperands() {
  return {{.name = "x"}, {.name = "y", .output = true}};
}

OpRules DropoutRules(const OpView& op) {
  OpRules rules;
  rules.gradients = {{"x", InputGradient::kMadeAgain}};
  rules.in_place = {{.output = "y", .input = "x", .same = op.op().fused()}};
  return rules;
}

}  // namespace troupe
