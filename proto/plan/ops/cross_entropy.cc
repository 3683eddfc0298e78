// CROSS_ENTROPY: the loss, summed, and the number of targets that count; with
// Op.step_sequences also of each sequence of the step by itself. One that is
// added to the model's loss (Op.added_weight) has another sum. The logits are
// the largest tensor of a small model, so they exist once: in training the loss
// overwrites them with their gradient.
//
//   inputs   logits   [batch, sequence, vocabulary]
//            targets  [batch, sequence]
//            parts    [ranks x batch, sequence, 3], f32, where the vocabulary
//            is
//                     cut: CROSS_ENTROPY_PARTS of all ranks
#include "proto/plan/ops/kinds.h"
#include "proto/plan/sum_names.h"

namespace troupe {
namespace {

// The largest logit, the sum of exponentials, the target's logit.
constexpr int64_t kSoftmaxParts = 3;

}  // namespace

std::vector<OperandRule> CrossEntropyOperands() {
  return {{.name = "logits", .dims = 3},
          {.name = "targets", .dims = 2},
          {.name = "parts", .optional = true, .dims = 3}};
}

OpRules CrossEntropyRules(const OpView& op) {
  const TensorSpec& logits = op.input("logits");
  OpRules rules;
  rules.gradients = {{"logits", InputGradient::kByForward}};
  rules.overwrites = {"logits"};
  rules.decodes = "logits";
  rules.batch_rows = "logits";
  rules.parts = {.of = "logits",
                 .kind = Op::CROSS_ENTROPY_PARTS,
                 .reads = {"logits", "targets"},
                 .parts = "parts",
                 .name = "softmax parts",
                 .columns = kSoftmaxParts};
  if (op.op().added_weight() > 0) {
    rules.sums = {{.name = kAddedLossSum, .rows_of = "logits"}};
  } else {
    rules.sums = {{.name = kLossSum, .rows_of = "logits"},
                  {.name = kTokensSum, .rows_of = "logits"}};
  }
  const int64_t sequences = op.op().step_sequences();
  if (sequences > 0) {
    for (const char* const name : {kSequenceLossesSum, kSequenceTokensSum}) {
      rules.sums.push_back(
          {.name = name, .elements = sequences, .rows_of = "logits"});
    }
  }
  // Reads the logits twice and writes their gradient.
  rules.forward.set_memory_bytes(3.0 * Bytes(logits));
  rules.forward.set_elementwise_ops(2.0 * Elements(logits));
  return rules;
}

}  // namespace troupe
