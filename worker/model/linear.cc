#include "worker/model/linear.h"

#include <utility>

#include "ops/bias_gradient.h"
#include "ops/matmul.h"
#include "proto/base/status.h"

namespace troupe {

absl::StatusOr<Linear> Linear::Create(const Unit& unit,
                                      const std::string& prefix,
                                      const LinearSize& size) {
  ASSIGN_OR_RETURN(TensorPlace weight, FindParameter(unit, prefix + ".weight",
                                                     {size.in, size.out}));
  ASSIGN_OR_RETURN(TensorPlace bias,
                   FindParameter(unit, prefix + ".bias", {size.out}));
  return Linear(std::move(weight), std::move(bias));
}

Linear::Linear(TensorPlace weight, TensorPlace bias)
    : weight_(std::move(weight)), bias_(std::move(bias)) {}

void Linear::Forward(Device& device, void* parameters,
                     const ForwardArgs& args) const {
  MatMul(device,
         {.a = args.x,
          .b = weight_.In(parameters),
          .c = args.y,
          .bias = bias_.In(parameters),
          .activation = args.gelu ? Activation::kGelu : Activation::kNone,
          .pre_activation = args.before_gelu});
}

void Linear::BackwardInput(Device& device, void* parameters,
                           const BackwardInputArgs& args) const {
  MatMul(device, {.a = args.dy,
                  .b = weight_.In(parameters),
                  .c = args.dx,
                  .transpose_b = true});
}

void Linear::BackwardWeight(Device& device, void* gradients,
                            const BackwardWeightArgs& args) const {
  MatMul(device, {.a = args.x,
                  .b = args.dy,
                  .c = weight_.In(gradients),
                  .transpose_a = true,
                  .accumulate = true});
  BiasGradient(device, {.dy = args.dy, .db = bias_.In(gradients)});
}

}  // namespace troupe
