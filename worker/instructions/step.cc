#include "worker/instructions/step.h"

#include <cmath>

#include "proto/base/status.h"

namespace troupe {
namespace {

// What clipping multiplies the gradients with. The host has to know it: the
// first STEP of a step waits for the norm.
absl::StatusOr<double> GradientScale(const Call& call) {
  RankState& state = call.state;
  const double norm_max = state.plan->job().training().gradient_clipping();
  if (norm_max == 0) return 1.0;
  if (!state.squared_norm.has_value()) {
    double squared_norm = 0;
    Device& device = DeviceOf(call);
    device.CopyToHost(
        &squared_norm,
        NeedOperand(call, Instruction::TOTALS) + kSquaredNorm * sizeof(double),
        sizeof(double));
    RETURN_IF_ERROR(device.Synchronize());
    state.squared_norm = squared_norm;
  }
  return ClipCoefficient(std::sqrt(*state.squared_norm), norm_max);
}

}  // namespace

absl::Status RunStep(const Call& call) {
  RankState& state = call.state;
  const int unit = call.instruction.unit();
  ASSIGN_OR_RETURN(const double gradient_scale, GradientScale(call));
  char* const parameters = RestOf(call, Instruction::WEIGHTS);
  // In bf16 the optimizer's weights are others than the model's parameters.
  char* const master = RestOf(call, Instruction::MASTER);
  const Buffer* const old = FindBuffer(call, Instruction::OLD_WEIGHTS);
  if (master == nullptr && old != nullptr) {
    DeviceOf(call).CopyWithin(parameters, MemoryOf(call, *old), old->bytes());
  }
  state.optimizer.Step(
      DeviceOf(call), state.plan->units(unit),
      {.weights = master == nullptr ? parameters : master,
       .parameters = master == nullptr ? nullptr : parameters,
       .gradients = RestOf(call, Instruction::WEIGHT_GRADIENTS),
       .state = RestOf(call, Instruction::MOMENTS),
       .step = state.step.step,
       .learning_rate = state.step.learning_rate,
       .gradient_scale = gradient_scale,
       .zero_gradients =
           AccessTo(call, Instruction::WEIGHT_GRADIENTS) != Instruction::READ,
       .holds = state.AtRest(unit)});
  return absl::OkStatus();
}

}  // namespace troupe
