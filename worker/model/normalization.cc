#include "worker/model/normalization.h"

#include <utility>

#include "ops/layer_norm.h"
#include "ops/rms_norm.h"
#include "proto/base/status.h"

namespace troupe {

absl::StatusOr<Normalization> Normalization::Create(const Unit& unit,
                                                    const Options& options) {
  ASSIGN_OR_RETURN(
      ParameterPlace gamma,
      FindParameter(unit, options.prefix + ".weight", {options.width}));
  ParameterPlace beta;
  if (options.kind == Kind::kLayerNorm) {
    ASSIGN_OR_RETURN(
        beta, FindParameter(unit, options.prefix + ".bias", {options.width}));
  }
  return Normalization(options, std::move(gamma), std::move(beta));
}

Normalization::Normalization(const Options& options, ParameterPlace gamma,
                             ParameterPlace beta)
    : kind_(options.kind),
      epsilon_(static_cast<float>(options.epsilon)),
      gamma_(std::move(gamma)),
      beta_(std::move(beta)) {}

void Normalization::Forward(Device& device, void* parameters,
                            const ForwardArgs& args) const {
  if (kind_ == Kind::kRmsNorm) {
    RmsNorm(device, {.x = args.x,
                     .residual = args.residual,
                     .sum = args.sum,
                     .dropout = args.dropout,
                     .gamma = gamma_.values.In(parameters),
                     .epsilon = epsilon_,
                     .y = args.y,
                     .rstd = args.rstd});
    return;
  }
  LayerNorm(device, {.x = args.x,
                     .residual = args.residual,
                     .sum = args.sum,
                     .dropout = args.dropout,
                     .gamma = gamma_.values.In(parameters),
                     .beta = beta_.values.In(parameters),
                     .epsilon = epsilon_,
                     .y = args.y,
                     .mean = args.mean,
                     .rstd = args.rstd});
}

void Normalization::BackwardInput(Device& device, void* parameters,
                                  const BackwardInputArgs& args) const {
  if (kind_ == Kind::kRmsNorm) {
    RmsNormBackwardInput(device, {.dy = args.dy,
                                  .s = args.s,
                                  .gamma = gamma_.values.In(parameters),
                                  .rstd = args.rstd,
                                  .residual_gradient = args.residual_gradient,
                                  .dx = args.dx});
    return;
  }
  LayerNormBackwardInput(device, {.dy = args.dy,
                                  .s = args.s,
                                  .gamma = gamma_.values.In(parameters),
                                  .mean = args.mean,
                                  .rstd = args.rstd,
                                  .residual_gradient = args.residual_gradient,
                                  .dx = args.dx});
}

void Normalization::BackwardWeight(Device& device, void* gradients,
                                   const BackwardWeightArgs& args) const {
  if (kind_ == Kind::kRmsNorm) {
    RmsNormBackwardWeight(device, {.dy = args.dy,
                                   .s = args.s,
                                   .rstd = args.rstd,
                                   .dgamma = gamma_.gradient.In(gradients)});
    return;
  }
  LayerNormBackwardWeight(device, {.dy = args.dy,
                                   .s = args.s,
                                   .mean = args.mean,
                                   .rstd = args.rstd,
                                   .dgamma = gamma_.gradient.In(gradients),
                                   .dbeta = beta_.gradient.In(gradients)});
}

}  // namespace troupe
