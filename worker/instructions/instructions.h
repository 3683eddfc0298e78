// The table of what a worker can do: one handler for each kind of instruction,
// each in a file of its own.
//
// To add a kind: docs/how_to_add/instruction.md.
#ifndef TROUPE_WORKER_INSTRUCTIONS_INSTRUCTIONS_H_
#define TROUPE_WORKER_INSTRUCTIONS_INSTRUCTIONS_H_

#include <vector>

#include "absl/status/status.h"
#include "worker/instructions/call.h"

namespace troupe {

// One row of the table.
struct InstructionHandler {
  Instruction::Kind kind;
  // Carries the instruction out, on its lane's thread, and returns when it is
  // done; on an asynchronous device, when its work is in the thread's queue and
  // needs nothing of the host any more. Operands lie in the tier of the lane
  // (TierOfOperands): on the device only ops and copies may touch them. Errors:
  // the world's only; where and when is added by the caller.
  absl::Status (*run)(const Call& call);
};

const std::vector<InstructionHandler>& InstructionHandlers();

// Unimplemented for a kind that the table lacks. Does nothing where the step is
// another rank's (RankState.skips).
absl::Status RunInstruction(const Call& call);

// What became of it, `queue` being what waiting for its end on the device has
// returned: what it moved between ranks may have failed there.
absl::Status OutcomeOf(const Call& call, const absl::Status& queue);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_INSTRUCTIONS_H_
