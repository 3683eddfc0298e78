// One instruction about to be carried out, and the memory of its operands, by
// their part in it (docs/plan.md).
//
// A handler trusts the plan: check_program has seen it, so a buffer that is
// missing is our bug.
#ifndef TROUPE_WORKER_INSTRUCTIONS_CALL_H_
#define TROUPE_WORKER_INSTRUCTIONS_CALL_H_

#include <string>

#include "absl/status/status.h"
#include "proto/plan/at_rest.h"
#include "proto/plan/layout.h"
#include "proto/program.pb.h"
#include "worker/collective/communicator.h"
#include "worker/model/model_unit.h"
#include "worker/rank/rank_state.h"

namespace troupe {

struct Call {
  RankState& state;
  const Program& program;
  const Instruction& instruction;
};

// The buffer that has this part in the instruction, or null.
const Buffer* FindBuffer(const Call& call, Instruction::Part part);

// What the instruction does to the buffer that has this part; READ where there
// is none.
Instruction::Access AccessTo(const Call& call, Instruction::Part part);

// Where a buffer begins in the step that the program runs for; its memory,
// which REQUIRES a tier that is such.
TierAddress AddressOf(const Call& call, const Buffer& buffer);
char* MemoryOf(const Call& call, const Buffer& buffer);

// That of the buffer which has this part; null where there is none.
char* Operand(const Call& call, Instruction::Part part);
// The same, CHECKed to be there.
char* NeedOperand(const Call& call, Instruction::Part part);

// Of an operand, the bytes that the instruction uses: all, or a part.
struct OperandBytes {
  char* data = nullptr;  // null: the instruction has no such operand
  int64_t bytes = 0;
};
OperandBytes BytesOfOperand(const Call& call, Instruction::Part part);

// What the instruction computes with.
inline Device& DeviceOf(const Call& call) {
  return call.state.DeviceOf(call.instruction.lane());
}

// Where in the operand what rests here of a stretch of its unit begins;
// nowhere: the instruction has no such operand. And its memory, as above.
TierAddress RestAddress(const Call& call, Instruction::Part part,
                        const StretchAtRest& at);
char* RestOf(const Call& call, Instruction::Part part, const StretchAtRest& at);

// The stretch in which the instruction's part of its unit lies; and of what
// rests of the part, what this rank does, counted from the first element that
// rests of the stretch.
StretchAtRest StretchOf(const Call& call);
Range DutyOf(const Call& call);

// What its exchange says to the communicator, `what` being what moves.
CommOptions CommOptionsOf(const Call& call, std::string what);

// The step that the instruction is part of, which may be a later one than that
// for which the program runs, and the data position when that begins.
int64_t StepOf(const Call& call);
int64_t SamplesBefore(const Call& call);

// What FORWARD, RECOMPUTE, BACKWARD_INPUT and BACKWARD_WEIGHT hand to the unit.
const ModelUnit& UnitOf(const Call& call);
UnitBuffers BuffersOf(const Call& call);
// Errors of the token files, of which it may read where documents end.
absl::StatusOr<MicroBatchContext> ContextOf(const Call& call);

// Of the samples of the instruction's step, over all ranks of the island, how
// many targets count (worker/rank/counted_targets.h). The same errors.
absl::StatusOr<int64_t> TargetsThatCount(const Call& call);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_CALL_H_
