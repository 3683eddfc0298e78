// Which experts each token goes to, and with what weight.
#include "ops/route.h"

#include "ops/reduce.h"
#include "worker/layers/kinds.h"

namespace troupe {
namespace {

class RouteLayer final : public Layer {
 public:
  explicit RouteLayer(const OpBinding& op)
      : rule_(RuleOf(op.op().route())),
        logits_(op.Input("logits")),
        choices_(op.Output("choices")),
        gates_(op.Output("gates")),
        scores_(op.Output("scores")),
        d_logits_(op.InputGradient("logits")),
        d_gates_(op.OutputGradient("gates")) {}

  void Forward(const LayerCall& call) const override {
    const Tensor logits = logits_.In(call);
    const Tensor scores = scores_.In(call);
    Route(call.device, {.logits = logits,
                        .rule = rule_,
                        .scores = scores.defined() ? scores : logits,
                        .choices = choices_.In(call),
                        .gates = gates_.In(call)});
  }

  void BackwardInput(const LayerCall& call) const override {
    const Tensor scores = scores_.In(call);
    const Tensor d_logits = d_logits_.In(call);
    const bool rounded = d_logits.dtype() != DType::kF32;
    RouteBackward(call.device, {.scores = scores,
                                .choices = choices_.In(call),
                                .d_gates = d_gates_.In(call),
                                .rule = rule_,
                                .d_logits = rounded ? scores : d_logits});
    // No pass reads the scores again.
    if (rounded) Copy(call.device, {.x = scores, .y = d_logits});
  }

 private:
  static RouteRule RuleOf(const Op::Route& route) {
    return {.scores =
                route.sigmoid() ? RouteScores::kSigmoid : RouteScores::kSoftmax,
            .renormalise = route.renormalise(),
            .scale = static_cast<float>(route.scale()),
            .groups = route.groups(),
            .groups_used = route.groups_used()};
  }

  const RouteRule rule_;
  const OperandPlace logits_;
  const OperandPlace choices_;
  const OperandPlace gates_;
  const OperandPlace scores_;
  const OperandPlace d_logits_;
  const OperandPlace d_gates_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewRoute(const OpBinding& op) {
  return std::make_unique<RouteLayer>(op);
}

}  // namespace troupe
