#include "worker/instructions/backward_weight.h"

namespace troupe {

namespace {

// Gradients that are a micro-batch's own hold nothing yet.
void ZeroWritten(const Call& call) {
  for (const Instruction::Operand& operand : call.instruction.operands()) {
    if (operand.access() != Instruction::WRITE) continue;
    const Buffer& buffer = call.program.buffers(operand.buffer());
    if (buffer.kind() != Buffer::UNSHARDED_GRADIENTS) continue;
    call.state.device.Zero(MemoryOf(call, buffer), buffer.bytes());
  }
}

}  // namespace

absl::Status RunBackwardWeight(const Call& call) {
  ZeroWritten(call);
  UnitOf(call).BackwardWeight(call.state.device, ContextOf(call),
                              BuffersOf(call));
  return absl::OkStatus();
}

}  // namespace troupe
