// Which experts each token goes to, and with what weight.
#include "ops/route.h"

#include <utility>

#include "ops/reduce.h"
#include "proto/base/status.h"
#include "proto/plan/tensor_spec.h"
#include "worker/layers/kinds.h"

namespace troupe {
namespace {

class RouteLayer final : public Layer {
 public:
  RouteLayer(const OpBinding& op, ParameterPlace bias)
      : rule_(RuleOf(op.op().route())),
        bias_(std::move(bias)),
        logits_(op.Input("logits")),
        choices_(op.Output("choices")),
        gates_(op.Output("gates")),
        scores_(op.Output("scores")),
        logsumexp_(op.Output("logsumexp")),
        d_logits_(op.InputGradient("logits")),
        d_gates_(op.OutputGradient("gates")),
        d_scores_(op.OutputGradient("scores")),
        d_logsumexp_(op.OutputGradient("logsumexp")) {}

  void Forward(const LayerCall& call) const override {
    const Tensor logits = logits_.In(call);
    const Tensor scores = scores_.In(call);
    Route(call.device, {.logits = logits,
                        .bias = bias_.Values(call),
                        .rule = rule_,
                        .scores = scores.defined() ? scores : logits,
                        .choices = choices_.In(call),
                        .gates = gates_.In(call),
                        .logsumexp = logsumexp_.In(call)});
  }

  void BackwardInput(const LayerCall& call) const override {
    const Tensor scores = scores_.In(call);
    const Tensor d_logits = d_logits_.In(call);
    const bool rounded = d_logits.dtype() != DType::kF32;
    RouteBackward(call.device, {.scores = scores,
                                .choices = choices_.In(call),
                                .d_gates = d_gates_.In(call),
                                .rule = rule_,
                                .d_scores = d_scores_.In(call),
                                .d_logsumexp = d_logsumexp_.In(call),
                                .logsumexp = logsumexp_.In(call),
                                .logits = logits_.In(call),
                                .d_logits = rounded ? scores : d_logits});
    // No pass reads the scores again.
    if (rounded) Copy(call.device, {.x = scores, .y = d_logits});
  }

  // The bias has a load, which lies in its gradient's place.
  void BackwardWeight(const LayerCall& call) const override {
    if (!bias_.trained()) return;
    const Tensor load = bias_.Gradient(call);
    RouteLoad(call.device, {.choices = choices_.In(call),
                            .load = load.View({1, load.elements()}),
                            .accumulate = true});
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
  const ParameterPlace bias_;
  const OperandPlace logits_;
  const OperandPlace choices_;
  const OperandPlace gates_;
  const OperandPlace scores_;
  const OperandPlace logsumexp_;
  const OperandPlace d_logits_;
  const OperandPlace d_gates_;
  const OperandPlace d_scores_;
  const OperandPlace d_logsumexp_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewRoute(const OpBinding& op) {
  ParameterPlace bias;
  if (op.op().parameters_size() > 0) {
    const int64_t experts = ColumnsOf(op.view().input("logits"));
    ASSIGN_OR_RETURN(bias, op.Parameter(0, {experts}));
  }
  return std::make_unique<RouteLayer>(op, std::move(bias));
}

}  // namespace troupe
