#include "worker/model/linear.h"

#include <utility>

#include "ops/bias_gradient.h"
#include "ops/matmul.h"
#include "proto/base/status.h"

namespace troupe {

absl::StatusOr<Linear> Linear::Create(const Unit& unit,
                                      const std::string& prefix,
                                      const LinearOptions& options) {
  const bool out_in = options.layout == WeightLayout::kOutIn;
  ASSIGN_OR_RETURN(
      ParameterPlace weight,
      FindParameter(unit, prefix + ".weight",
                    out_in ? std::vector<int64_t>{options.out, options.in}
                           : std::vector<int64_t>{options.in, options.out}));
  ParameterPlace bias;
  if (options.bias) {
    ASSIGN_OR_RETURN(bias,
                     FindParameter(unit, prefix + ".bias", {options.out}));
  }
  return Linear(std::move(weight), std::move(bias), options.layout);
}

absl::optional<Linear> Linear::Join(const Linear& left, const Linear& right) {
  // Only rows can be put side by side without moving anything.
  if (left.layout_ != WeightLayout::kOutIn ||
      right.layout_ != WeightLayout::kOutIn ||
      left.bias_.defined() != right.bias_.defined()) {
    return absl::nullopt;
  }
  const auto weight = JoinRows(left.weight_, right.weight_);
  if (!weight.has_value()) return absl::nullopt;
  if (!left.bias_.defined()) {
    return Linear(*weight, ParameterPlace(), WeightLayout::kOutIn);
  }
  const auto bias = JoinRows(left.bias_, right.bias_);
  if (!bias.has_value()) return absl::nullopt;
  return Linear(*weight, *bias, WeightLayout::kOutIn);
}

Linear::Linear(ParameterPlace weight, ParameterPlace bias, WeightLayout layout)
    : weight_(std::move(weight)), bias_(std::move(bias)), layout_(layout) {}

int64_t Linear::out() const {
  return weight_.values.dims[layout_ == WeightLayout::kOutIn ? 0 : 1];
}

void Linear::Forward(Device& device, void* parameters,
                     const ForwardArgs& args) const {
  MatMul(device,
         {.a = args.x,
          .b = weight_.values.In(parameters),
          .c = args.y,
          .transpose_b = layout_ == WeightLayout::kOutIn,
          .bias = bias_.defined() ? bias_.values.In(parameters) : Tensor(),
          .activation = args.gelu ? Activation::kGelu : Activation::kNone,
          .pre_activation = args.before_gelu});
}

void Linear::BackwardInput(Device& device, void* parameters,
                           const BackwardInputArgs& args) const {
  MatMul(device, {.a = args.dy,
                  .b = weight_.values.In(parameters),
                  .c = args.dx,
                  .transpose_b = layout_ == WeightLayout::kInOut,
                  .accumulate = args.accumulate,
                  .gelu_input = args.gelu_input});
}

void Linear::BackwardWeight(Device& device, void* gradients,
                            const BackwardWeightArgs& args) const {
  const bool out_in = layout_ == WeightLayout::kOutIn;
  MatMul(device, {.a = out_in ? args.dy : args.x,
                  .b = out_in ? args.x : args.dy,
                  .c = weight_.gradient.In(gradients),
                  .transpose_a = true,
                  .accumulate = !args.from_zero});
  if (!bias_.defined()) return;
  BiasGradient(device, {.dy = args.dy, .db = bias_.gradient.In(gradients)});
}

}  // namespace troupe
