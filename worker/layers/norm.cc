// y = norm(s) of s = x, or of s = x + residual, with x under the mask of a
// fused DROPOUT that makes it. LayerNorm or RMSNorm.
#include <utility>

#include "ops/layer_norm.h"
#include "ops/rms_norm.h"
#include "proto/base/status.h"
#include "proto/plan/tensor_spec.h"
#include "worker/layers/kinds.h"

namespace troupe {
namespace {

// What both norms share.
class NormLayer : public Layer {
 protected:
  NormLayer(const OpBinding& op, ParameterPlace gamma)
      : x_(op.Input("x")),
        residual_(op.Input("residual")),
        sum_(op.Output("sum")),
        y_(op.Output("y")),
        rstd_(op.Output("rstd")),
        s_(op.view().HasInput("residual") ? sum_ : x_),
        dy_(op.OutputGradient("y")),
        dx_(op.InputGradient("x")),
        added_(op.view().HasInput("residual") ? op.OutputGradient("sum")
                                              : op.AddedGradient("x")),
        mask_(op.MaskOf("x")),
        apart_(op.places().again == Again::kApart),
        epsilon_(static_cast<float>(op.op().norm().epsilon())),
        gamma_(std::move(gamma)) {}

  // What a call of the norm has to do with.
  struct Rows {
    Tensor x;
    Tensor residual = {};
    Tensor sum = {};
    DropoutMask dropout = {};
    Tensor y;
    Tensor rstd;
    Tensor mean = {};
  };
  virtual void Run(const LayerCall& call, const Rows& rows) const = 0;
  virtual Tensor Mean(const LayerCall& call) const { return {}; }

 public:
  void Forward(const LayerCall& call) const override {
    const int64_t all = x_.In(call).rows();
    for (const MaskedRows& rows : mask_.OfElements(call)) {
      Run(call, {.x = rows.Of(x_.In(call), all),
                 .residual = rows.Of(residual_.In(call), all),
                 .sum = rows.Of(sum_.In(call), all),
                 .dropout = rows.mask,
                 .y = rows.Of(y_.In(call), all),
                 .rstd = rows.Of(rstd_.In(call), all),
                 .mean = rows.Of(Mean(call), all)});
    }
  }

  // From the sum where forward has left that.
  void Recompute(const LayerCall& call) const override {
    if (!apart_) return Forward(call);
    Run(call, {.x = s_.In(call),
               .y = y_.In(call),
               .rstd = rstd_.In(call),
               .mean = Mean(call)});
  }

 protected:
  const OperandPlace x_;
  const OperandPlace residual_;
  const OperandPlace sum_;
  const OperandPlace y_;
  const OperandPlace rstd_;
  const OperandPlace s_;  // what is normalised
  const OperandPlace dy_;
  const OperandPlace dx_;
  const OperandPlace added_;  // the gradient that other readers of s made
  const MaskSource mask_;
  const bool apart_;  // made again from s
  const float epsilon_;
  const ParameterPlace gamma_;
};

class RmsNormLayer final : public NormLayer {
 public:
  RmsNormLayer(const OpBinding& op, ParameterPlace gamma)
      : NormLayer(op, std::move(gamma)) {}

  void Run(const LayerCall& call, const Rows& rows) const override {
    RmsNorm(call.device, {.x = rows.x,
                          .residual = rows.residual,
                          .sum = rows.sum,
                          .dropout = rows.dropout,
                          .gamma = gamma_.Values(call),
                          .epsilon = epsilon_,
                          .y = rows.y,
                          .rstd = rows.rstd});
  }

  void BackwardInput(const LayerCall& call) const override {
    RmsNormBackwardInput(call.device, {.dy = dy_.In(call),
                                       .s = s_.In(call),
                                       .gamma = gamma_.Values(call),
                                       .rstd = rstd_.In(call),
                                       .residual_gradient = added_.In(call),
                                       .dx = dx_.In(call)});
  }

  void BackwardWeight(const LayerCall& call) const override {
    RmsNormBackwardWeight(call.device, {.dy = dy_.In(call),
                                        .s = s_.In(call),
                                        .rstd = rstd_.In(call),
                                        .dgamma = gamma_.Gradient(call)});
  }
};

class LayerNormLayer final : public NormLayer {
 public:
  LayerNormLayer(const OpBinding& op, ParameterPlace gamma, ParameterPlace beta)
      : NormLayer(op, std::move(gamma)),
        mean_(op.Output("mean")),
        beta_(std::move(beta)) {}

  void Run(const LayerCall& call, const Rows& rows) const override {
    LayerNorm(call.device, {.x = rows.x,
                            .residual = rows.residual,
                            .sum = rows.sum,
                            .dropout = rows.dropout,
                            .gamma = gamma_.Values(call),
                            .beta = beta_.Values(call),
                            .epsilon = epsilon_,
                            .y = rows.y,
                            .mean = rows.mean,
                            .rstd = rows.rstd});
  }
  Tensor Mean(const LayerCall& call) const override { return mean_.In(call); }

  void BackwardInput(const LayerCall& call) const override {
    LayerNormBackwardInput(call.device, {.dy = dy_.In(call),
                                         .s = s_.In(call),
                                         .gamma = gamma_.Values(call),
                                         .mean = mean_.In(call),
                                         .rstd = rstd_.In(call),
                                         .residual_gradient = added_.In(call),
                                         .dx = dx_.In(call)});
  }

  void BackwardWeight(const LayerCall& call) const override {
    LayerNormBackwardWeight(call.device, {.dy = dy_.In(call),
                                          .s = s_.In(call),
                                          .mean = mean_.In(call),
                                          .rstd = rstd_.In(call),
                                          .dgamma = gamma_.Gradient(call),
                                          .dbeta = beta_.Gradient(call)});
  }

 private:
  const OperandPlace mean_;
  const ParameterPlace beta_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewNorm(const OpBinding& op) {
  const int64_t width = ColumnsOf(op.view().input("x"));
  ASSIGN_OR_RETURN(ParameterPlace gamma, op.Parameter(0, {width}));
  if (op.op().norm().root_mean_square()) {
    return std::make_unique<RmsNormLayer>(op, std::move(gamma));
  }
  ASSIGN_OR_RETURN(ParameterPlace beta, op.Parameter(1, {width}));
  return std::make_unique<LayerNormLayer>(op, std::move(gamma),
                                          std::move(beta));
}

}  // namespace troupe
