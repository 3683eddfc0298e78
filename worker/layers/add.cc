// y = x + residual; x under the mask of a fused DROPOUT that makes it. The
// gradients of both are that of y.
#include "ops/dropout.h"
#include "worker/layers/kinds.h"

namespace troupe {
namespace {

class AddLayer final : public Layer {
 public:
  explicit AddLayer(const OpBinding& op)
      : x_(op.Input("x")),
        residual_(op.Input("residual")),
        y_(op.Output("y")),
        mask_(op.MaskOf("x")) {}

  void Forward(const LayerCall& call) const override {
    ApplyDropout(call.device, {.x = x_.In(call),
                               .residual = residual_.In(call),
                               .y = y_.In(call),
                               .mask = mask_.OfElements(call)});
  }

 private:
  const OperandPlace x_;
  const OperandPlace residual_;
  const OperandPlace y_;
  const MaskSource mask_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewAdd(const OpBinding& op) {
  return std::make_unique<AddLayer>(op);
}

}  // namespace troupe
