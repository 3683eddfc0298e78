// FORK: x for one reader and for another: the same memory. Its gradient is the
// sum of theirs, y's first. So neither's gradient waits for the other's. For one
// reader alone, x's gradient is a copy of that of y, which is another tensor's
// too.
//
//   inputs   x
//   outputs  y      x
//            other  x, where there is another reader
#include "proto/plan/ops/kinds.h"

namespace troupe {

std::vector<OperandRule> ForkOperands() {
  return {{.name = "x"},
          {.name = "y", .output = true},
          {.name = "other", .output = true, .optional = true}};
}

OpRules ForkRules(const OpView& op) {
  OpRules rules;
  rules.only_names = true;
  rules.in_place = {{.output = "y", .input = "x", .same = true}};
  rules.gradients = {{"x", InputGradient::kInPlaceIfOwn, "y"}};
  const bool sums = op.HasOutput("other");
  if (sums) {
    rules.in_place.push_back({.output = "other", .input = "x", .same = true});
  }
  rules.backward_input.set_memory_bytes((sums ? 3 : 2) *
                                        Bytes(op.input("x")));
  return rules;
}

}  // namespace troupe
