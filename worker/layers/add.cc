// y = x + residual; x under the mask of a fused DROPOUT that makes it. Fused,
// it is the product's work that makes x. The gradients of both are that of y.
#include "ops/dropout.h"
#include "worker/layers/kinds.h"

namespace troupe {
namespace {

class AddLayer final : public Layer {
 public:
  explicit AddLayer(const OpBinding& op)
      : fused_(op.op().fused()),
        x_(op.Input("x")),
        residual_(op.Input("residual")),
        y_(op.Output("y")),
        mask_(op.MaskOf("x")) {}

  void Forward(const LayerCall& call) const override {
    if (fused_) return;
    const Tensor x = x_.In(call);
    const int64_t all = x.rows();
    for (const MaskedRows& rows : mask_.OfElements(call)) {
      ApplyDropout(call.device, {.x = rows.Of(x, all),
                                 .residual = rows.Of(residual_.In(call), all),
                                 .y = rows.Of(y_.In(call), all),
                                 .mask = rows.mask});
    }
  }

 private:
  const bool fused_;
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
