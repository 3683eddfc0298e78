// CAPACITY: gates of choices for which their expert has no room are 0
// (ops/capacity.h). Where axes cut the sequence it needs all ranks' counts.
//
//   inputs   choices  [batch, sequence, choices], i32
//            gates    [batch, sequence, choices], f32
//            counts   [ranks, batch, choices, experts], f32; optional:
//                     ROUTER_LOAD of all ranks along the axes that cut the
//                     sequence, in their order
//   outputs  kept     as gates
#include "proto/plan/ops/kinds.h"
#include "proto/plan/sum_names.h"

namespace troupe {

std::vector<OperandRule> CapacityOperands() {
  return {{.name = "choices", .dims = 3},
          {.name = "gates", .dims = 3},
          {.name = "counts", .optional = true, .dims = 4},
          {.name = "kept", .output = true, .dims = 3}};
}

OpRules CapacityRules(const OpView& op) {
  const double bytes = Bytes(op.input("gates"));
  OpRules rules;
  rules.gradients = {{"gates", InputGradient::kNew}};
  rules.backward_input_reads = {"kept"};
  rules.sums = {{.name = kDroppedChoicesSum, .rows_of = "gates"}};
  rules.forward.set_memory_bytes(3.0 * bytes);
  rules.backward_input.set_memory_bytes(3.0 * bytes);
  return rules;
}

}  // namespace troupe
