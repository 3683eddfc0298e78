// One tensor for two readers: nothing forward, the sum of their gradients
// backward, where the first one's lies.
#include "ops/reduce.h"
#include "proto/base/check.h"
#include "worker/layers/kinds.h"

namespace troupe {
namespace {

class ForkLayer final : public Layer {
 public:
  explicit ForkLayer(const OpBinding& op)
      : dy_(op.OutputGradient("y")), dother_(op.OutputGradient("other")) {
    CHECK(op.places().inputs[0].memory == op.places().outputs[0].memory &&
          op.places().inputs[0].offset_bytes ==
              op.places().outputs[0].offset_bytes)
        << "both are x";
  }

  void Forward(const LayerCall&) const override {}

  void BackwardInput(const LayerCall& call) const override {
    Add(call.device, {.x = dother_.In(call), .y = dy_.In(call)});
  }

 private:
  const OperandPlace dy_;
  const OperandPlace dother_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewFork(const OpBinding& op) {
  return std::make_unique<ForkLayer>(op);
}

}  // namespace troupe
