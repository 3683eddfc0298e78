// CROSS_ENTROPY_PARTS: what a rank's columns of the logits add to the softmax
// of a row and to its loss (arXiv 1909.08053, section 3): their largest, the
// sum of the exponentials of the others less that, and the target's logit, if
// it is among them. The whole logits are on no rank.
//
//   inputs   logits   [batch, sequence, vocabulary]
//            targets  [batch, sequence]
//   outputs  parts    [batch, sequence, 3], f32
#include "proto/plan/ops/kinds.h"

namespace troupe {

std::vector<OperandRule> CrossEntropyPartsOperands() {
  return {{.name = "logits", .dims = 3},
          {.name = "targets", .dims = 2},
          {.name = "parts", .output = true, .dims = 3}};
}

OpRules CrossEntropyPartsRules(const OpView& op) {
  const TensorSpec& logits = op.input("logits");
  OpRules rules;
  rules.batch_rows = "logits";
  rules.training_only = true;
  rules.forward.set_memory_bytes(Bytes(logits));
  rules.forward.set_elementwise_ops(Elements(logits));
  return rules;
}

}  // namespace troupe
