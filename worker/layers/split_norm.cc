// ROW_SUMS: the sums of rows and of their squares; and SPLIT_NORM: y = norm(x)
// of rows whose other columns other ranks have, by the row sums of all.
#include "ops/split_norm.h"

#include <utility>

#include "ops/layer_norm.h"
#include "ops/rms_norm.h"
#include "proto/base/status.h"
#include "proto/plan/slices.h"
#include "proto/plan/tensor_spec.h"
#include "worker/layers/kinds.h"

namespace troupe {
namespace {

class RowSumsLayer final : public Layer {
 public:
  explicit RowSumsLayer(const OpBinding& op)
      : x_(op.Input("x")),
        y_(op.Output("y")),
        dx_(op.InputGradient("x")),
        dy_(op.OutputGradient("y")),
        added_(op.AddedGradient("x")) {}

  void Forward(const LayerCall& call) const override {
    RowSums(call.device, {.x = x_.In(call), .row_sums = y_.In(call)});
  }

  void BackwardInput(const LayerCall& call) const override {
    RowSumsBackward(call.device, {.x = x_.In(call),
                                  .row_sums_gradient = dy_.In(call),
                                  .residual_gradient = added_.In(call),
                                  .dx = dx_.In(call)});
  }

 private:
  const OperandPlace x_;
  const OperandPlace y_;
  const OperandPlace dx_;
  const OperandPlace dy_;
  const OperandPlace added_;
};

class SplitNormLayer final : public Layer {
 public:
  SplitNormLayer(const OpBinding& op, ParameterPlace gamma, ParameterPlace beta)
      : x_(op.Input("x")),
        row_sums_(op.Input("row_sums")),
        y_(op.Output("y")),
        mean_(op.Output("mean")),
        rstd_(op.Output("rstd")),
        dx_(op.InputGradient("x")),
        drow_sums_(op.InputGradient("row_sums")),
        dy_(op.OutputGradient("y")),
        added_(op.AddedGradient("x")),
        columns_(WholeColumns(op.view().input("x"))),
        centred_(!op.op().norm().root_mean_square()),
        epsilon_(static_cast<float>(op.op().norm().epsilon())),
        gamma_(std::move(gamma)),
        beta_(std::move(beta)) {}

  void Forward(const LayerCall& call) const override {
    SplitNorm(call.device, {.x = x_.In(call),
                            .row_sums = row_sums_.In(call),
                            .columns = columns_,
                            .gamma = gamma_.Values(call),
                            .beta = beta_.Values(call),
                            .centred = centred_,
                            .epsilon = epsilon_,
                            .y = y_.In(call),
                            .mean = mean_.In(call),
                            .rstd = rstd_.In(call)});
  }

  void BackwardInput(const LayerCall& call) const override {
    SplitNormBackwardInput(call.device,
                           {.dy = dy_.In(call),
                            .x = x_.In(call),
                            .gamma = gamma_.Values(call),
                            .mean = mean_.In(call),
                            .rstd = rstd_.In(call),
                            .columns = columns_,
                            .residual_gradient = added_.In(call),
                            .dx = dx_.In(call),
                            .row_sums_gradient = drow_sums_.In(call)});
  }

  void BackwardWeight(const LayerCall& call) const override {
    if (centred_) {
      LayerNormBackwardWeight(call.device, {.dy = dy_.In(call),
                                            .s = x_.In(call),
                                            .mean = mean_.In(call),
                                            .rstd = rstd_.In(call),
                                            .dgamma = gamma_.Gradient(call),
                                            .dbeta = beta_.Gradient(call)});
    } else {
      RmsNormBackwardWeight(call.device, {.dy = dy_.In(call),
                                          .s = x_.In(call),
                                          .rstd = rstd_.In(call),
                                          .dgamma = gamma_.Gradient(call)});
    }
  }

 private:
  const OperandPlace x_;
  const OperandPlace row_sums_;
  const OperandPlace y_;
  const OperandPlace mean_;
  const OperandPlace rstd_;
  const OperandPlace dx_;
  const OperandPlace drow_sums_;
  const OperandPlace dy_;
  const OperandPlace added_;  // the gradient that other readers of x made
  const int64_t columns_;     // of all ranks
  const bool centred_;
  const float epsilon_;
  const ParameterPlace gamma_;
  const ParameterPlace beta_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewRowSums(const OpBinding& op) {
  return std::make_unique<RowSumsLayer>(op);
}

absl::StatusOr<std::unique_ptr<Layer>> NewSplitNorm(const OpBinding& op) {
  const int64_t width = ColumnsOf(op.view().input("x"));
  ASSIGN_OR_RETURN(ParameterPlace gamma, op.Parameter(0, {width}));
  ParameterPlace beta;
  if (!op.op().norm().root_mean_square()) {
    ASSIGN_OR_RETURN(beta, op.Parameter(1, {width}));
  }
  return std::make_unique<SplitNormLayer>(op, std::move(gamma),
                                          std::move(beta));
}

}  // namespace troupe
