// y = gelu(x). Fused, the products before and behind it do its work, but where
// y alone is made again.
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
        y_(op.Output("y")),
        dx_(op.InputGradient("x")),
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
                               .exact = exact_});
  }

 private:
  void Run(const LayerCall& call) const {
    Gelu(call.device, {.x = x_.In(call), .y = y_.In(call), .exact = exact_});
  }

  const bool fused_;
  const bool apart_;  // from the product's, without it
  const bool exact_;
  const OperandPlace x_;
  const OperandPlace y_;
  const OperandPlace dx_;
  const OperandPlace dy_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewGelu(const OpBinding& op) {
  return std::make_unique<GeluLayer>(op);
}

}  // namespace troupe
