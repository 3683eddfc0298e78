// CONCAT: the columns of two tensors side by side.
//
//   inputs   first  [..., first]
//            rest   [..., others]
//   outputs  y      [..., first | others]
#include "proto/plan/ops/kinds.h"

namespace troupe {

std::vector<OperandRule> ConcatOperands() {
  return {{.name = "first", .dims = 3},
          {.name = "rest", .dims = 3},
          {.name = "y", .output = true, .dims = 3}};
}

OpRules ConcatRules(const OpView& op) {
  OpRules rules;
  rules.gradients = {{"first", InputGradient::kNew},
                     {"rest", InputGradient::kNew}};
  const double bytes = 2 * Bytes(op.output("y"));
  rules.forward.set_memory_bytes(bytes);
  rules.backward_input.set_memory_bytes(bytes);
  return rules;
}

}  // namespace troupe
