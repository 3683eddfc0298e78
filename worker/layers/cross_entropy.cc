// The loss of logits. In training the forward pass overwrites them with their
// gradient, so that nothing is left for the backward ones.
#include "ops/cross_entropy.h"

#include "proto/base/check.h"
#include "worker/layers/kinds.h"

namespace troupe {
namespace {

class CrossEntropyLayer final : public Layer {
 public:
  explicit CrossEntropyLayer(const OpBinding& op)
      : logits_(op.Input("logits")), targets_(op.Input("targets")) {}

  void Forward(const LayerCall& call) const override {
    CHECK(call.scalars != nullptr) << "a loss needs scalars to add to";
    CrossEntropy(
        call.device,
        {.logits = logits_.In(call),
         .targets = targets_.In(call),
         .loss_sum = Tensor(call.scalars, DType::kF64, {1}),
         .count = Tensor(call.scalars + 1, DType::kF64, {1}),
         .gradient = call.context.training,
         .gradient_scale = static_cast<float>(call.context.gradient_scale)});
  }

 private:
  const OperandPlace logits_;
  const OperandPlace targets_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewCrossEntropy(const OpBinding& op) {
  return std::make_unique<CrossEntropyLayer>(op);
}

}  // namespace troupe
