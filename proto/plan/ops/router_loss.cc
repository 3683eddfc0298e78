// ROUTER_LOSS: what keeps experts evenly loaded and logits small, as a part of
// the loss, and sums of what the router did (ops/router_loss.h). It makes
// nothing that is read: its gradients are those of the losses.
//
//   inputs      scores     [batch, sequence, experts], f32
//               choices    [batch, sequence, choices], i32
//               load       [batch, experts], f32, of whole sequences: with a
//                          balance by sequence
//               logsumexp  [batch, sequence], f32: with a z-loss
//   parameters  the load of the step before over the mean, [experts]: with a
//               balance over the global batch (Parameter.load)
#include "proto/plan/ops/kinds.h"
#include "proto/plan/sum_names.h"

namespace troupe {

std::vector<OperandRule> RouterLossOperands() {
  return {{.name = "scores", .dims = 3, .sections = 1},
          {.name = "choices", .dims = 3, .sections = 1},
          {.name = "load", .optional = true, .dims = 2},
          {.name = "logsumexp", .optional = true, .dims = 2}};
}

OpRules RouterLossRules(const OpView& op) {
  const TensorSpec& scores = op.input("scores");
  const bool by_sequence = op.HasInput("load");
  const bool z = op.HasInput("logsumexp");
  OpRules rules;
  rules.training_only = true;
  const bool balances = by_sequence || op.op().parameters_size() > 0;
  if (balances) {
    rules.gradients.push_back({"scores", InputGradient::kNew});
    if (by_sequence) rules.backward_input_reads.push_back("load");
  }
  if (z) {
    rules.gradients.push_back({"logsumexp", InputGradient::kNew});
    rules.backward_input_reads.push_back("logsumexp");
  }
  if (balances || z) rules.backward_input_reads.push_back("scores");
  if (TrainsAny(op.op())) rules.backward_weight_reads = {"choices"};
  rules.weight_reads_gradient = false;
  const auto sum = [&rules](const char* name, int64_t elements, bool own) {
    rules.sums.push_back(
        {.name = name, .elements = elements, .own = own, .rows_of = "scores"});
  };
  sum(kExpertTokensSum, static_cast<int64_t>(Columns(scores)), true);
  sum(kRouterEntropySum, 1, false);
  sum(kRouterTokensSum, 1, false);
  if (balances) sum(kRouterBalanceSum, 1, false);
  if (z) sum(kRouterZSum, 1, false);
  rules.forward.set_memory_bytes(Bytes(scores));
  rules.forward.set_elementwise_ops(Elements(scores));
  if (!rules.gradients.empty()) {
    rules.backward_input.set_memory_bytes(2.0 * Bytes(scores));
  }
  return rules;
}

OpCut RouterLossCut(const OpView& op, const Wishes& wishes) {
  OpCut cut = CutAlike(op, wishes);
  cut.sums_parameters =
      wishes.tensors[op.Input("scores")].placement == Layout::SHARD;
  return cut;
}

}  // namespace troupe
