#include "worker/instructions/step.h"

#include <cmath>

#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/islands.h"
#include "proto/plan/precision.h"
#include "proto/plan/trained.h"
#include "worker/model/initialize.h"

namespace troupe {
namespace {

// The sum of squares of all gradients, as they are. The host has to know it:
// the first STEP of a step waits for it.
absl::StatusOr<double> SquaredNorm(const Call& call) {
  RankState& state = call.state;
  if (!state.squared_norm.has_value()) {
    double squared_norm = 0;
    Device& device = DeviceOf(call);
    const OperandBytes sum = BytesOfOperand(call, Instruction::TOTALS);
    CHECK_EQ(sum.bytes, sizeof(squared_norm));
    device.CopyToHost(&squared_norm, sum.data, sizeof(squared_norm));
    RETURN_IF_ERROR(device.Synchronize());
    state.squared_norm = squared_norm;
  }
  return *state.squared_norm;
}

bool LeavesZeros(const Call& call) {
  return AccessTo(call, Instruction::WEIGHT_GRADIENTS) != Instruction::READ;
}

// Leaves all as it was, but for the gradients, where they are to be zero:
// parameters are what the master weights round to.
void Skip(const Call& call) {
  RankState& state = call.state;
  for (const StretchAtRest& at : state.AtRest(call.instruction.unit())) {
    const int64_t elements = at.rests.size();
    if (at.stretch.frozen || elements == 0) continue;
    if (LeavesZeros(call)) {
      DeviceOf(call).Zero(RestOf(call, Instruction::WEIGHT_GRADIENTS, at),
                          elements * DTypeBytes(state.TypeOfGradients(
                                         call.instruction.unit())));
    }
    RoundParameters(DeviceOf(call), elements,
                    {.weights = RestOf(call, Instruction::MASTER, at),
                     .parameters = RestOf(call, Instruction::WEIGHTS, at),
                     .type = state.TypeOfParameters(call.instruction.unit())});
  }
}

absl::Status StepStretch(const Call& call, const StretchAtRest& at,
                         double gradient_scale) {
  RankState& state = call.state;
  char* const parameters = RestOf(call, Instruction::WEIGHTS, at);
  // Where the optimizer's weights are others than the model's parameters.
  char* const master = RestOf(call, Instruction::MASTER, at);
  return state.optimizer.Step(
      DeviceOf(call), state.plan->units(call.instruction.unit()),
      {.weights = master == nullptr ? parameters : master,
       .parameters = master == nullptr ? nullptr : parameters,
       .parameters_type = state.TypeOfParameters(call.instruction.unit()),
       .gradients = RestOf(call, Instruction::WEIGHT_GRADIENTS, at),
       .gradients_type = state.TypeOfGradients(call.instruction.unit()),
       .state = RestOf(call, Instruction::MOMENTS, at),
       .step = state.step.step - state.loss_scale.state().skipped_steps,
       .learning_rate = state.step.learning_rate,
       .gradient_scale = gradient_scale,
       .zero_gradients = LeavesZeros(call),
       .holds = at.rests,
       .tokens = static_cast<double>(TokensOfIsland(*state.plan)),
       .workspace = Operand(call, Instruction::SCRATCH)});
}

}  // namespace

absl::Status RunStep(const Call& call) {
  RankState& state = call.state;
  const int unit = call.instruction.unit();
  const TrainingSpec& training = state.plan->job().training();
  double gradient_scale = 1 / state.loss_scale.factor();
  if (UpdatesNeedNorm(training)) {
    ASSIGN_OR_RETURN(const double squared_norm, SquaredNorm(call));
    if (ScalesLoss(training) && LossScale::Overflowed(squared_norm)) {
      Skip(call);
      return absl::OkStatus();
    }
    gradient_scale *= ClipCoefficient(std::sqrt(squared_norm) * gradient_scale,
                                      training.gradient_clipping());
  }
  const Buffer* const old = FindBuffer(call, Instruction::OLD_WEIGHTS);
  // The optimizer makes all that is trained; of others what is frozen is taken
  // over, too.
  const bool makes_all = FindBuffer(call, Instruction::MASTER) != nullptr &&
                         FrozenRange(state.plan->units(unit)).size() == 0;
  if (old != nullptr && !makes_all) {
    DeviceOf(call).CopyWithin(NeedOperand(call, Instruction::WEIGHTS),
                              MemoryOf(call, *old), old->bytes());
  }
  for (const StretchAtRest& at : state.AtRest(unit)) {
    if (at.stretch.frozen) continue;
    RETURN_IF_ERROR(StepStretch(call, at, gradient_scale));
  }
  return absl::OkStatus();
}

}  // namespace troupe
