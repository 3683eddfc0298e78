// y = gelu(x). Fused, the products before and behind it do its work.
#include "ops/gelu.h"

#include "worker/layers/kinds.h"

namespace troupe {
namespace {

class GeluLayer final : public Layer {
 public:
  explicit GeluLayer(const OpBinding& op)
      : fused_(op.op().fused()),
        exact_(op.op().gelu().exact()),
        x_(op.Input("x")),
        y_(op.Output("y")),
        dx_(op.InputGradient("x")),
        dy_(op.OutputGradient("y")) {}

  void Forward(const LayerCall& call) const override {
    if (fused_) return;
    Gelu(call.device, {.x = x_.In(call), .y = y_.In(call), .exact = exact_});
  }

  void BackwardInput(const LayerCall& call) const override {
    if (fused_) return;
    GeluBackward(call.device, {.x = x_.In(call),
                               .dy = dy_.In(call),
                               .dx = dx_.In(call),
                               .exact = exact_});
  }

 private:
  const bool fused_;
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
