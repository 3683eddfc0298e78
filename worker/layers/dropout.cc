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
    Mask(call, x_.In(call), y_.In(call));
  }

  void BackwardInput(const LayerCall& call) const override {
    Mask(call, dy_.In(call), dx_.In(call));
  }

  void BackwardWeight(const LayerCall& call) const override {
    if (again_) BackwardInput(call);
  }

 private:
  void Mask(const LayerCall& call, const Tensor& x, const Tensor& y) const {
    const int64_t all = x.rows();
    for (const MaskedRows& rows : mask_.OfElements(call)) {
      if (rows.mask.probability == 0 && x.raw() == y.raw()) continue;
      ApplyDropout(
          call.device,
          {.x = rows.Of(x, all), .y = rows.Of(y, all), .mask = rows.mask});
    }
  }

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
