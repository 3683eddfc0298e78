// y = gelu(x), weighted by rows where the op has weights. Fused, the products
// before and behind it do its work, but where y alone is made again.
#include "ops/gelu.h"

#include "worker/layers/kinds.h"

namespace troupe {
namespace {

class GeluLayer final : public Layer {
 public:
  explicit GeluLayer(const OpBinding& op)
      : fused_(op.op().fused()),
        apart_(op.places().again == Again::kApart),
        exact_(op.op().gelu().exact()),
        x_(op.Input("x")),
        weights_(op.Input("weights")),
        offsets_(op.Input("offsets")),
        y_(op.Output("y")),
        dx_(op.InputGradient("x")),
        d_weights_(op.InputGradient("weights")),
        dy_(op.OutputGradient("y")) {}

  void Forward(const LayerCall& call) const override {
    if (!fused_) Run(call);
  }

  void Recompute(const LayerCall& call) const override {
    if (!fused_ || apart_) Run(call);
  }

  void BackwardInput(const LayerCall& call) const override {
    if (fused_) return;
    GeluBackward(call.device, {.x = x_.In(call),
                               .dy = dy_.In(call),
                               .dx = dx_.In(call),
                               .exact = exact_,
                               .weights = weights_.In(call),
                               .d_weights = d_weights_.In(call),
                               .offsets = offsets_.In(call)});
  }

 private:
  void Run(const LayerCall& call) const {
    Gelu(call.device, {.x = x_.In(call),
                       .y = y_.In(call),
                       .exact = exact_,
                       .weights = weights_.In(call),
                       .offsets = offsets_.In(call)});
  }

  const bool fused_;
  const bool apart_;  // from the product's, without it
  const bool exact_;
  const OperandPlace x_;
  const OperandPlace weights_;
  const OperandPlace offsets_;
  const OperandPlace y_;
  const OperandPlace dx_;
  const OperandPlace d_weights_;
  const OperandPlace dy_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewGelu(const OpBinding& op) {
  return std::make_unique<GeluLayer>(op);
}

}  // namespace troupe
