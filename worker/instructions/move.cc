#include "worker/instructions/move.h"

#include "proto/base/check.h"
#include "proto/plan/program_text.h"

namespace troupe {

absl::Status RunMove(const Call& call) {
  const Buffer* const from = FindBuffer(call, Instruction::FROM);
  const Buffer* const to = FindBuffer(call, Instruction::TO);
  CHECK(from != nullptr && to != nullptr)
      << InstructionWords(call.instruction) << " does not say what it moves";
  if (from->bytes() == 0) return absl::OkStatus();
  return call.state.PortOf(call.instruction.lane())
      .Move(AddressOf(call, *from), AddressOf(call, *to), from->bytes());
}

}  // namespace troupe
