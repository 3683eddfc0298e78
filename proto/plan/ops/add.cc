// ADD: y = x + residual. Fused, the product that makes x adds the residual, and
// writes y where x would be.
//
//   inputs   x, residual   of one shape
//   outputs  y
#include "proto/plan/ops/kinds.h"

namespace troupe {

std::vector<OperandRule> AddOperands() {
  return {{.name = "x"}, {.name = "residual"}, {.name = "y", .output = true}};
}

OpRules AddRules(const OpView& op) {
  constexpr double kTouched = 3;  // both, and the sum
  OpRules rules;
  rules.gradients = {{"x", InputGradient::kOfOutput, "y"},
                     {"residual", InputGradient::kOfOutput, "y"}};
  rules.in_place = {{.output = "y", .input = "x", .same = op.op().fused()}};
  rules.fusion = {.forward_by_maker = true, .reads = true};
  rules.forward.set_memory_bytes(kTouched * Bytes(op.output("y")));
  return rules;
}

}  // namespace troupe
