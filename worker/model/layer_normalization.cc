#include "worker/model/layer_normalization.h"

#include <utility>

#include "proto/base/status.h"

namespace troupe {

absl::StatusOr<LayerNormalization> LayerNormalization::Create(
    const Unit& unit, const Options& options) {
  ASSIGN_OR_RETURN(
      TensorPlace gamma,
      FindParameter(unit, options.prefix + ".weight", {options.width}));
  ASSIGN_OR_RETURN(
      TensorPlace beta,
      FindParameter(unit, options.prefix + ".bias", {options.width}));
  return LayerNormalization(std::move(gamma), std::move(beta),
                            static_cast<float>(options.epsilon));
}

LayerNormalization::LayerNormalization(TensorPlace gamma, TensorPlace beta,
                                       float epsilon)
    : gamma_(std::move(gamma)), beta_(std::move(beta)), epsilon_(epsilon) {}

void LayerNormalization::Forward(Device& device, void* parameters,
                                 LayerNormArgs args) const {
  args.gamma = gamma_.In(parameters);
  args.beta = beta_.In(parameters);
  args.epsilon = epsilon_;
  LayerNorm(device, args);
}

void LayerNormalization::BackwardInput(Device& device, void* parameters,
                                       LayerNormBackwardInputArgs args) const {
  args.gamma = gamma_.In(parameters);
  LayerNormBackwardInput(device, args);
}

void LayerNormalization::BackwardWeight(
    Device& device, void* gradients, LayerNormBackwardWeightArgs args) const {
  args.dgamma = gamma_.In(gradients);
  args.dbeta = beta_.In(gradients);
  LayerNormBackwardWeight(device, args);
}

}  // namespace troupe
