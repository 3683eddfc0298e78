#include "worker/instructions/backward_weight.h"

#include "proto/base/status.h"

namespace troupe {

namespace {

// Gradients that it begins hold nothing yet, or those of the step before.
void ZeroWritten(const Call& call) {
  for (const Instruction::Operand& operand : call.instruction.operands()) {
    const bool adds = operand.part() == Instruction::WEIGHT_GRADIENTS ||
                      operand.part() == Instruction::TIED_GRADIENTS;
    if (!adds || operand.access() != Instruction::WRITE) continue;
    const Buffer& gradients = call.program.buffers(operand.buffer());
    call.state.device.Zero(MemoryOf(call, gradients), gradients.bytes());
  }
}

}  // namespace

absl::Status RunBackwardWeight(const Call& call) {
  ZeroWritten(call);
  ASSIGN_OR_RETURN(const MicroBatchContext context, ContextOf(call));
  UnitOf(call).BackwardWeight(call.state.device, context, BuffersOf(call));
  return absl::OkStatus();
}

}  // namespace troupe
