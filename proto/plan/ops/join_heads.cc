// JOIN_HEADS: queries, keys and values that were made apart, side by side, as
// ATTENTION and ROPE read them (ops/join_heads.h). Keys may have some columns
// that are the same for all heads: multi-head latent attention (DeepSeek-V3,
// arXiv 2412.19437, section 2.1.1). These, and as many of a query, come first
// in y: they are the ones that turn.
//
//   inputs   q       [batch, sequence, heads x (others + shared)]
//            k       [batch, sequence, key-value heads x others]; without v
//                    key-value heads x (others + values)
//            v       [batch, sequence, key-value heads x values]; optional
//            shared  [batch, sequence, shared]; optional
//   outputs  y       [batch, sequence, heads | key-value heads | the same]
#include "proto/plan/ops/kinds.h"

namespace troupe {

std::vector<OperandRule> JoinHeadsOperands() {
  return {{.name = "q", .dims = 3, .sections = 1},
          {.name = "k", .dims = 3, .sections = 1},
          {.name = "v", .optional = true, .dims = 3, .sections = 1},
          {.name = "shared", .optional = true, .dims = 3, .sections = 1},
          {.name = "y", .output = true, .dims = 3, .sections = 3}};
}

OpRules JoinHeadsRules(const OpView& op) {
  OpRules rules;
  double read = 0;
  for (const Op::Operand& input : op.op().inputs()) {
    rules.gradients.push_back({input.name(), InputGradient::kNew});
    read += Bytes(op.input(input.name()));
  }
  const double bytes = read + Bytes(op.output("y"));
  rules.forward.set_memory_bytes(bytes);
  rules.backward_input.set_memory_bytes(bytes);
  return rules;
}

// Of heads that are cut each rank has a summand of the shared columns'
// gradient.
OpCut JoinHeadsCut(const OpView& op, const Wishes& wishes) {
  OpCut cut = CutAlike(op, wishes);
  if (!op.HasInput("shared") ||
      !CutsColumns(op.output("y"), wishes.tensors[op.Output("y")])) {
    return cut;
  }
  for (int i = 0; i < op.op().inputs_size(); ++i) {
    if (op.op().inputs(i).name() != "shared") continue;
    cut.inputs[i] = {.value = {}, .gradient = {.placement = Layout::PARTIAL}};
  }
  return cut;
}

}  // namespace troupe
