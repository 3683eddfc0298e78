// GELU (arXiv 1606.08415), in the tanh form or exact. Fused, which is only the
// tanh form, the product before it writes both
// x and y, and the product behind it makes the gradient of x.
//
// Or weighted by rows, as SWIGLU is, of the experts of a GPT-2: y = weight
// gelu(x).
//
//   inputs   x
//            weights  [...], f32; optional: of each row
//            offsets  [groups + 1], i32; optional: as those of SWIGLU
//   outputs  y
#include "proto/plan/ops/kinds.h"

namespace troupe {

std::vector<OperandRule> GeluOperands() {
  return {{.name = "x"},
          {.name = "weights", .optional = true},
          {.name = "offsets", .optional = true, .dims = 1},
          {.name = "y", .output = true}};
}

OpRules GeluRules(const OpView& op) {
  const TensorSpec& y = op.output("y");
  OpRules rules;
  rules.gradients = {{"x", InputGradient::kNew}};
  rules.backward_input_reads = {"x"};
  if (op.HasInput("weights")) {
    rules.gradients.push_back({"weights", InputGradient::kNew});
    rules.backward_input_reads.push_back("weights");
  }
  if (op.HasInput("offsets")) rules.backward_input_reads.push_back("offsets");
  rules.forward.set_memory_bytes(Bytes(y));
  rules.forward.set_elementwise_ops(Elements(y));
  rules.backward_input.set_memory_bytes(3.0 * Bytes(y));
  rules.backward_input.set_elementwise_ops(Elements(y));
  rules.fusion = {.forward_by_maker = true, .backward_by_reader = true};
  if (op.op().fused()) {
    rules.apart_reads = {"x"};
    rules.apart.set_memory_bytes(2.0 * Bytes(y));
    rules.apart.set_elementwise_ops(Elements(y));
  }
  return rules;
}

OpCut GeluCut(const OpView& op, const Wishes& wishes) {
  return CutWithRowWeights(op, wishes);
}

}  // namespace troupe
