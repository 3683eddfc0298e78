// SWIGLU: y = silu(gate) * up (Shazeer, arXiv 2002.05202).
//
// Or weighted by rows: y = weight silu(gate) * up, of experts, whose gates
// these are (ops/swiglu.h).
//
//   inputs   gate_up  [..., intermediate | intermediate]
//            weights  [...], f32; optional
//            offsets  [groups + 1], i32; optional: of rows of which the tensors
//                     have more room, as REGROUP makes them. Those beyond the
//                     last offset are left alone
//   outputs  y        [..., intermediate]
#include "proto/plan/ops/kinds.h"

namespace troupe {

std::vector<OperandRule> SwiGluOperands() {
  return {{.name = "gate_up", .sections = 2},
          {.name = "weights", .optional = true},
          {.name = "offsets", .optional = true, .dims = 1},
          {.name = "y", .output = true}};
}

OpRules SwiGluRules(const OpView& op) {
  const TensorSpec& y = op.output("y");
  OpRules rules;
  rules.gradients = {{"gate_up", InputGradient::kNew}};
  rules.backward_input_reads = {"gate_up"};
  if (op.HasInput("weights")) {
    rules.gradients.push_back({"weights", InputGradient::kNew});
    rules.backward_input_reads.push_back("weights");
  }
  if (op.HasInput("offsets")) rules.backward_input_reads.push_back("offsets");
  rules.forward.set_memory_bytes(3.0 * Bytes(y));
  rules.forward.set_elementwise_ops(Elements(y));
  // Reads both and y's gradient, and writes theirs.
  rules.backward_input.set_memory_bytes(5.0 * Bytes(y));
  rules.backward_input.set_elementwise_ops(Elements(y));
  return rules;
}

OpCut SwiGluCut(const OpView& op, const Wishes& wishes) {
  return CutWithRowWeights(op, wishes);
}

// Of columns that are cut each rank has a summand of the weights' gradient.
OpCut CutWithRowWeights(const OpView& op, const Wishes& wishes) {
  OpCut cut = CutAlike(op, wishes);
  if (!op.HasInput("weights") ||
      !CutsColumns(op.output("y"), wishes.tensors[op.Output("y")])) {
    return cut;
  }
  for (int i = 0; i < op.op().inputs_size(); ++i) {
    if (op.op().inputs(i).name() != "weights") continue;
    cut.inputs[i] = {.value = {}, .gradient = {.placement = Layout::PARTIAL}};
  }
  return cut;
}

}  // namespace troupe
