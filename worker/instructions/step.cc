#include "worker/instructions/step.h"

#include <cmath>

#include "proto/base/status.h"

namespace troupe {

absl::Status RunStep(const Call& call) {
  RankState& state = call.state;
  const int unit = call.instruction.unit();
  double squared_norm = 0;
  state.device.CopyToHost(
      &squared_norm,
      NeedOperand(call, Buffer::SCALARS) + kSquaredNorm * sizeof(double),
      sizeof(double));
  RETURN_IF_ERROR(state.device.Synchronize());
  // In bf16 the optimizer's weights are others than the model's parameters.
  char* const parameters = NeedOperand(call, Buffer::PARAMETERS, unit);
  char* const master = Operand(call, Buffer::MASTER_WEIGHTS, unit);
  const double norm_max = state.plan->job().training().gradient_clipping();
  state.optimizer.Step(
      state.device, state.plan->units(unit),
      {.weights = master == nullptr ? parameters : master,
       .parameters = master == nullptr ? nullptr : parameters,
       .gradients = NeedOperand(call, Buffer::PARAMETER_GRADIENTS, unit),
       .state = Operand(call, Buffer::OPTIMIZER_STATE, unit),
       .step = state.step.step,
       .learning_rate = state.step.learning_rate,
       .gradient_scale = ClipCoefficient(std::sqrt(squared_norm), norm_max)});
  return state.device.Synchronize();
}

}  // namespace troupe
