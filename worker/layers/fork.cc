// One tensor for two readers: nothing forward, the sum of their gradients
// backward, where the first one's lies if nobody else needs that. For one
// reader, a copy of its gradient.
#include "ops/reduce.h"
#include "proto/base/check.h"
#include "worker/layers/kinds.h"

namespace troupe {
namespace {

class ForkLayer final : public Layer {
 public:
  explicit ForkLayer(const OpBinding& op)
      : dy_(op.OutputGradient("y")),
        dother_(op.OutputGradient("other")),
        dx_(op.InputGradient("x")),
        copies_(!AreSamePlace(op.places().input_gradients[0],
                              op.places().output_gradients[0])) {
    for (const TensorPlace& output : op.places().outputs) {
      CHECK(AreSamePlace(op.places().inputs[0], output)) << "all are x";
    }
  }

  void Forward(const LayerCall&) const override {}

  void BackwardInput(const LayerCall& call) const override {
    const Tensor dx = dx_.In(call);
    if (copies_) Copy(call.device, {.x = dy_.In(call), .y = dx});
    if (dother_.exists()) Add(call.device, {.x = dother_.In(call), .y = dx});
  }

 private:
  const OperandPlace dy_;
  const OperandPlace dother_;
  const OperandPlace dx_;
  const bool copies_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewFork(const OpBinding& op) {
  return std::make_unique<ForkLayer>(op);
}

}  // namespace troupe
