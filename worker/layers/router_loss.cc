// The load of experts, and the losses and sums that a router has of it.
#include "ops/router_loss.h"

#include <utility>

#include "ops/route.h"
#include "proto/base/status.h"
#include "proto/plan/slices.h"
#include "proto/plan/sum_names.h"
#include "proto/plan/tensor_spec.h"
#include "worker/layers/kinds.h"

namespace troupe {
namespace {

class RouterLoadLayer final : public Layer {
 public:
  explicit RouterLoadLayer(const OpBinding& op)
      : rows_(op.RowsOfSequences("choices")),
        choices_(op.Input("choices")),
        load_(op.Output("load")),
        by_choice_(op.view().output("load").dims_size() > 2) {}

  void Forward(const LayerCall& call) const override {
    RouteLoad(call.device, {.choices = choices_.In(call),
                            .rows = rows_,
                            .load = load_.RowsIn(call),
                            .by_choice = by_choice_});
  }

 private:
  const TokenRows rows_;
  const OperandPlace choices_;
  const OperandPlace load_;
  const bool by_choice_;
};

// What a router's load is measured against.
struct LoadPlace {
  OperandPlace of_sequences;
  ParameterPlace of_step_before;
  TokenRows rows;
  double scale = 1;  // to the load over the mean

  Tensor In(const LayerCall& call) const {
    if (!of_step_before.exists()) return of_sequences.In(call);
    const Tensor shares = of_step_before.Values(call);
    return shares.View({1, shares.elements()});
  }
};

class RouterLossLayer final : public Layer {
 public:
  RouterLossLayer(const OpBinding& op, LoadPlace load)
      : load_(std::move(load)),
        spec_(op.op().router_loss()),
        scores_(op.Input("scores")),
        choices_(op.Input("choices")),
        logsumexp_(op.Input("logsumexp")),
        d_scores_(op.InputGradient("scores")),
        d_logsumexp_(op.InputGradient("logsumexp")),
        tokens_(op.Sum(kExpertTokensSum)),
        entropy_(op.Sum(kRouterEntropySum)),
        rows_(op.Sum(kRouterTokensSum)),
        balances_(op.view().HasInput("load") || op.op().parameters_size() > 0),
        has_z_(op.view().HasInput("logsumexp")) {
    if (balances_) balance_ = op.Sum(kRouterBalanceSum);
    if (has_z_) z_ = op.Sum(kRouterZSum);
  }

  void Forward(const LayerCall& call) const override {
    if (!tokens_.adds() || call.decoding.count > 0) return;
    const Tensor scores = scores_.In(call);
    RouterLoss(call.device,
               {.scores = scores,
                .load = load_.In(call),
                .load_scale = load_.scale,
                .rows = load_.rows,
                .logsumexp = logsumexp_.In(call),
                .choices = choices_.In(call),
                .balance = balances_ ? balance_.In(call) : Tensor(),
                .z = has_z_ ? z_.In(call) : Tensor(),
                .entropy = entropy_.In(call),
                .rows_counted = rows_.In(call),
                .tokens = tokens_.In(call)});
  }

  // It makes nothing, and the sums have it already.
  void Recompute(const LayerCall&) const override {}

  // Where there is no loss nothing that it would read need be there.
  void BackwardInput(const LayerCall& call) const override {
    const bool balances = d_scores_.exists();
    const bool has_z = d_logsumexp_.exists();
    if (!balances && !has_z) return;
    const double scale = call.context.token_scale;
    RouterLossBackward(call.device,
                       {.scores = scores_.In(call),
                        .load = balances ? load_.In(call) : Tensor(),
                        .load_scale = load_.scale,
                        .rows = load_.rows,
                        .logsumexp = has_z ? logsumexp_.In(call) : Tensor(),
                        .balance_scale = scale * spec_.balance_coefficient(),
                        .z_scale = scale * spec_.z_coefficient(),
                        .d_scores = d_scores_.In(call),
                        .d_logsumexp = d_logsumexp_.In(call)});
  }

  void BackwardWeight(const LayerCall& call) const override {
    if (!load_.of_step_before.trained()) return;
    const Tensor load = load_.of_step_before.Gradient(call);
    RouteLoad(call.device, {.choices = choices_.In(call),
                            .load = load.View({1, load.elements()}),
                            .accumulate = true});
  }

 private:
  const LoadPlace load_;
  const Op::RouterLoss spec_;
  const OperandPlace scores_;
  const OperandPlace choices_;
  const OperandPlace logsumexp_;
  const OperandPlace d_scores_;
  const OperandPlace d_logsumexp_;
  const SumTarget tokens_;
  const SumTarget entropy_;
  const SumTarget rows_;
  const bool balances_;
  const bool has_z_;
  SumTarget balance_;
  SumTarget z_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewRouterLoad(const OpBinding& op) {
  return std::make_unique<RouterLoadLayer>(op);
}

absl::StatusOr<std::unique_ptr<Layer>> NewRouterLoss(const OpBinding& op) {
  const TensorSpec& scores = op.view().input("scores");
  LoadPlace load;
  if (op.op().parameters_size() > 0) {
    ASSIGN_OR_RETURN(load.of_step_before, op.Parameter(0, {ColumnsOf(scores)}));
  } else {
    load.of_sequences = op.Input("load");
    load.rows = op.RowsOfSequences("scores");
    const auto choices =
        static_cast<double>(ColumnsOf(op.view().input("choices")) *
                            WholeCount(scores.dims(1).sections(0)));
    load.scale = static_cast<double>(ColumnsOf(scores)) / choices;
  }
  return std::make_unique<RouterLossLayer>(op, std::move(load));
}

}  // namespace troupe
