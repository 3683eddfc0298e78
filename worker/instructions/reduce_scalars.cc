#include "worker/instructions/reduce_scalars.h"

#include "proto/base/status.h"

namespace troupe {

absl::Status RunReduceScalars(const Call& call) {
  RankState& state = call.state;
  if (call.instruction.ahead() < 0 &&
      StepOf(call) <= state.step.summed_through) {
    return absl::OkStatus();
  }
  char* memory = NeedOperand(call, Instruction::TOTALS);
  const double flags[] = {state.step.stop ? 1.0 : 0.0,
                          state.step.save ? 1.0 : 0.0};
  static_assert(kSaveFlag == kStopFlag + 1);
  RETURN_IF_ERROR(state.flags->Copy(memory + kStopFlag * sizeof(double), flags,
                                    sizeof(flags)));
  return state.communicators.at(call.instruction.group())
      ->AllReduce(
          {.data = memory, .elements = kScalarCount, .element = Element::kF64},
          ReduceOp::kSum, CommOptionsOf(call, "loss and gradient norm"));
}

}  // namespace troupe
