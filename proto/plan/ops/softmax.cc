// SOFTMAX: probabilities of whole rows of scores, each query seeing the keys up
// to its own position.
//
//   inputs   x          [batch, heads, sequence, keys]
//            documents  optional: as ATTENTION has it
//   outputs  y          as x; where x was, if nobody reads that
//            dropped    optional: y under the mask
#include "proto/plan/ops/kinds.h"

namespace troupe {

std::vector<OperandRule> SoftmaxOperands() {
  return {{.name = "x", .dims = 4},
          {.name = "documents", .optional = true, .dims = 2},
          {.name = "y", .output = true, .dims = 4},
          {.name = "dropped", .output = true, .optional = true, .dims = 4}};
}

OpRules SoftmaxRules(const OpView& op) {
  OpRules rules;
  rules.batch_rows = "x";
  rules.in_place = {{"y", "x"}};
  rules.gradients = {{"x", InputGradient::kInPlace,
                      op.HasOutput("dropped") ? "dropped" : "y"}};
  rules.backward_input_reads = {"y"};
  if (op.HasInput("documents")) {
    rules.backward_input_reads.push_back("documents");
  }
  const double passes = op.HasOutput("dropped") ? 2 : 1;
  rules.forward.set_memory_bytes(2 * passes * Bytes(op.input("x")));
  rules.forward.set_elementwise_ops(Elements(op.input("x")));
  rules.backward_input.set_memory_bytes((1 + 2 * passes) *
                                        Bytes(op.input("x")));
  return rules;
}

}  // namespace troupe
