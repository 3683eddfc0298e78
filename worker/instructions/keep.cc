#include "worker/instructions/keep.h"

#include "proto/base/check.h"
#include "worker/instructions/copy_state.h"

namespace troupe {

absl::Status RunKeep(const Call& call) {
  const UnitFlatBuffers state = StateOf(call);
  const OperandBytes copy = BytesOfOperand(call, Instruction::COPY);
  CHECK(copy.data != nullptr) << "a KEEP that copies to nowhere";
  return CopyState(call, state, {.begin = 0, .end = state.holds->size()},
                   copy.data)
      .status();
}

}  // namespace troupe
