// ATTENTION_PART: one of the calls that ATTENTION becomes where ranks hand
// their keys and values around (Ring Attention, arXiv 2310.01889): the rank's
// queries and the keys of the rank `hop` places before it. Online softmax goes
// on from call to call, in what has been found so far; the first begins it, the
// last has the whole.
//
//   inputs   q                 [batch, sequence, heads]
//            kv                [batch, sequence, key-value heads | the same]
//            y before          optional: y of the call before, f32
//            logsumexp before  optional: its logsumexp
//            documents         optional: as ATTENTION has it
//   outputs  y                 heads as wide as those of values; f32 but for
//                              the last call's
//            logsumexp         [batch, heads, sequence], f32, where the one
//                              before was
//   backward inputs
//            all y             y and logsumexp of the last call: the gradient
//            all logsumexp     needs no other
//   mask     of the probabilities
//   softmax  as ATTENTION has it
//
// Backward the calls come last to first, and each takes the same gradient, that
// of the last y. The gradient of q adds up on the way, in f32, where the
// gradients of the ys before would be, which nobody needs.
#include "proto/plan/ops/gpu_scratch.h"
#include "proto/plan/ops/kinds.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {

std::vector<OperandRule> AttentionPartOperands() {
  return {{.name = "q", .dims = 3, .sections = 1},
          {.name = "kv", .dims = 3, .sections = 2},
          {.name = "y before", .optional = true, .dims = 3},
          {.name = "logsumexp before", .optional = true, .dims = 3},
          {.name = "documents", .optional = true, .dims = 2},
          {.name = "y", .output = true, .dims = 3},
          {.name = "logsumexp", .output = true, .dims = 3},
          {.name = "all y", .backward = true, .dims = 3},
          {.name = "all logsumexp", .backward = true, .dims = 3}};
}

OpRules AttentionPartRules(const OpView& op) {
  OpRules rules;
  rules.batch_rows = "q";
  const bool first = !op.HasInput("y before");
  const bool last = op.Output("y") == op.BackwardInput("all y");
  if (first) {
    rules.gradients = {{"q", InputGradient::kNew}};
  } else {
    rules.in_place = {{"logsumexp", "logsumexp before"}};
    const bool alike = op.output("y").dtype() == op.input("y before").dtype();
    if (alike) rules.in_place.push_back({"y", "y before"});
    rules.gradients = {
        last ? InputGradient{"y before", InputGradient::kNew}
             : InputGradient{"y before", InputGradient::kInPlace, "y"}};
  }
  rules.gradients.push_back({"kv", InputGradient::kNew});
  rules.backward_input_reads = {"q", "kv", "all y", "all logsumexp"};
  if (op.HasInput("documents")) {
    rules.backward_input_reads.push_back("documents");
  }
  // In zigzag order a rank's queries see half of any rank's keys; of its own,
  // one of the diagonal more.
  const double seen = static_cast<double>(DimSize(op.input("kv").dims(1))) +
                      (first ? 1.0 : 0.0);
  const double keys = Elements(op.input("q"));
  const double values = Elements(op.output("y"));
  rules.forward = AttentionWork(keys, values, seen, /*backward=*/false);
  rules.backward_input = AttentionWork(keys, values, seen, /*backward=*/true);
  rules.gpu_scratch_bytes = GpuAttentionScratchBytes(op);
  return rules;
}

}  // namespace troupe
