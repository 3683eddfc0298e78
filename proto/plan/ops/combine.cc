// COMBINE: the sum of each token's rows, in the order of its choices
// (ops/permute.h). Rows are weighted already (SWIGLU). Where ranks have
// summands of the rows, they have summands of the sums.
//
//   inputs   x        [batch, sequence, choices, hidden], expert by expert
//            sources  [batch, sequence, choices], i32
//            places   [batch, sequence, choices], i32
//   outputs  y        [batch, sequence, hidden]
#include "proto/plan/ops/kinds.h"

namespace troupe {

std::vector<OperandRule> CombineOperands() {
  return {{.name = "x", .dims = 4},
          {.name = "sources", .dims = 3},
          {.name = "places", .dims = 3},
          {.name = "y", .output = true, .dims = 3}};
}

OpRules CombineRules(const OpView& op) {
  const double bytes = Bytes(op.input("x")) + Bytes(op.output("y"));
  OpRules rules;
  rules.gradients = {{"x", InputGradient::kNew}};
  rules.backward_input_reads = {"sources"};
  rules.forward.set_memory_bytes(bytes);
  rules.backward_input.set_memory_bytes(bytes);
  return rules;
}

OpCut CombineCut(const OpView& op, const Wishes& wishes) {
  if (!CutsWithinExperts(wishes)) return CutAlike(op, wishes);
  constexpr TensorCut kSummand = {.value = {.placement = Layout::PARTIAL}};
  return {.inputs = {kSummand, {}, {}}, .outputs = {kSummand}};
}

}  // namespace troupe
