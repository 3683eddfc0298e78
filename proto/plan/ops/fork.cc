// FORK: x for one reader and for another: the same memory. Its gradient is the
// sum of theirs. So neither's gradient waits for the other's.
//
//   inputs   x
//   outputs  y      x
//            other  x
#include "proto/plan/ops/kinds.h"

namespace troupe {

std::vector<OperandRule> ForkOperands() {
  return {{.name = "x"},
          {.name = "y", .output = true},
          {.name = "other", .output = true}};
}

OpRules ForkRules(const OpView& op) {
  OpRules rules;
  rules.in_place = {{.output = "y", .input = "x", .same = true},
                    {.output = "other", .input = "x", .same = true}};
  rules.gradients = {{"x", InputGradient::kInPlace, "y"}};
  rules.backward_input.set_memory_bytes(3 * Bytes(op.input("x")));
  return rules;
}

}  // namespace troupe
