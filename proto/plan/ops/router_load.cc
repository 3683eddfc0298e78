// ROUTER_LOAD: how often each expert is chosen in each sequence (RouteLoad in
// ops/route.h). Where a sequence is cut over ranks each has a summand.
//
//   inputs   choices  [batch, sequence, choices], i32
//   outputs  load     [batch, experts], f32; or [batch, choices, experts]: by
//                     which of a token's choices
#include "proto/plan/ops/kinds.h"

namespace troupe {

std::vector<OperandRule> RouterLoadOperands() {
  return {{.name = "choices", .dims = 3},
          {.name = "load", .output = true}};
}

OpRules RouterLoadRules(const OpView& op) {
  OpRules rules;
  rules.training_only = true;
  rules.forward.set_memory_bytes(Bytes(op.input("choices")) +
                                 Bytes(op.output("load")));
  return rules;
}

OpCut RouterLoadCut(const OpView& op, const Wishes& wishes) {
  OpCut cut = CutAlike(op, wishes);
  const AxisCut& choices = wishes.tensors[op.Input("choices")];
  if (choices.placement == Layout::SHARD && choices.dim == 1) {
    cut.outputs[0] = {.value = {.placement = Layout::PARTIAL}, .gradient = {}};
  }
  return cut;
}

}  // namespace troupe
