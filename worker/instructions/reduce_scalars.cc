#include "worker/instructions/reduce_scalars.h"

#include "proto/base/status.h"
#include "proto/plan/sums.h"

namespace troupe {

absl::Status RunReduceScalars(const Call& call) {
  RankState& state = call.state;
  if (call.instruction.ahead() < 0 &&
      StepOf(call) <= state.step.summed_through) {
    return absl::OkStatus();
  }
  const OperandBytes sums = BytesOfOperand(call, Instruction::TOTALS);
  const double flags[] = {state.step.stop ? 1.0 : 0.0,
                          state.step.save ? 1.0 : 0.0};
  // The other flag follows (check_sums). Where islands agree, they are all.
  const bool flags_only = call.instruction.has_when();
  const SumPlace stop = PlaceOfSum(*state.plan, kStopSum);
  RETURN_IF_ERROR(state.flags->Copy(
      sums.data + (flags_only ? 0 : stop.begin_bytes()), flags, sizeof(flags)));
  return state.communicators.at(call.instruction.group())
      ->AllReduce(
          {.data = sums.data,
           .elements = sums.bytes / static_cast<int64_t>(sizeof(double)),
           .element = DType::kF64},
          ReduceOp::kSum,
          CommOptionsOf(
              call, flags_only ? "whether to stop" : "loss and gradient norm"));
}

}  // namespace troupe
