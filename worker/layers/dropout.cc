// y = x under a mask. Fused, the op that reads y masks it as it reads; the
// gradient is masked here in either case.
#include "ops/dropout.h"

#include "worker/layers/kinds.h"

namespace troupe {
namespace {

class DropoutLayer final : public Layer {
 public:
  explicit DropoutLayer(const OpBinding& op)
      : fused_(op.op().fused()),
        again_(op.places().makes_gradient_again),
        x_(op.Input("x")),
        y_(op.Output("y")),
        dx_(op.InputGradient("x")),
        dy_(op.OutputGradient("y")),
        mask_(op.OwnMask()) {}

  void Forward(const LayerCall& call) const override {
    if (fused_) return;
    const Tensor x = x_.In(call);
    const Tensor y = y_.In(call);
    const DropoutMask mask = mask_.OfElements(call);
    if (mask.probability == 0 && x.raw() == y.raw()) return;
    ApplyDropout(call.device, {.x = x, .y = y, .mask = mask});
  }

  void BackwardInput(const LayerCall& call) const override {
    ApplyDropout(
        call.device,
        {.x = dy_.In(call), .y = dx_.In(call), .mask = mask_.OfElements(call)});
  }

  void BackwardWeight(const LayerCall& call) const override {
    if (again_) BackwardInput(call);
  }

 private:
  const bool fused_;
  const bool again_;
  const OperandPlace x_;
  const OperandPlace y_;
  const OperandPlace dx_;
  const OperandPlace dy_;
  const MaskSource mask_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewDropout(const OpBinding& op) {
  return std::make_unique<DropoutLayer>(op);
}

}  // namespace troupe
