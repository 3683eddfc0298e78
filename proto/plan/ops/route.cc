// ROUTE: which experts a token goes to, and the weight of each (ops/route.h).
//
//   inputs      logits     [batch, sequence, experts], f32
//   outputs     choices    [batch, sequence, choices], i32
//               gates      [batch, sequence, choices], f32
//               scores     as logits: the softmax or sigmoid, of which the
//                          gates are
//               logsumexp  [batch, sequence], f32, of the logits; optional
//   parameters  a bias of each expert in the choice, [experts]; optional. It
//               has no gradient: its load is counted (Parameter.load)
#include "proto/plan/ops/kinds.h"

namespace troupe {

std::vector<OperandRule> RouteOperands() {
  return {{.name = "logits", .dims = 3, .sections = 1},
          {.name = "choices", .output = true, .dims = 3, .sections = 1},
          {.name = "gates", .output = true, .dims = 3, .sections = 1},
          {.name = "scores", .output = true, .dims = 3, .sections = 1},
          {.name = "logsumexp", .output = true, .optional = true, .dims = 2}};
}

OpRules RouteRules(const OpView& op) {
  const TensorSpec& logits = op.input("logits");
  OpRules rules;
  rules.always_written = {"choices"};
  rules.gradients = {{"logits", InputGradient::kNew}};
  rules.backward_input_reads = {"scores", "choices"};
  if (op.HasOutput("logsumexp") && op.op().route().sigmoid()) {
    // The slope of the logsumexp is a softmax, which the scores are not.
    rules.backward_input_reads.push_back("logits");
    rules.backward_input_reads.push_back("logsumexp");
  } else {
    rules.in_place = {{.output = "scores", .input = "logits"}};
  }
  if (TrainsAny(op.op())) rules.backward_weight_reads = {"choices"};
  rules.weight_reads_gradient = false;
  // Reads a row once for the scores, and again for each choice.
  const double choices = Columns(op.output("choices"));
  rules.forward.set_memory_bytes((2.0 + choices) * Bytes(logits));
  rules.forward.set_elementwise_ops(Elements(logits));
  rules.backward_input.set_memory_bytes(2.0 * Bytes(logits));
  return rules;
}

}  // namespace troupe
