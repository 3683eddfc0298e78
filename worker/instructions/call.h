// One instruction about to be carried out, and its operands: which memory is
// which of the buffers that docs/plan.md says the kind reads and writes.
//
// A handler trusts the plan: check_program has seen it, so a buffer that is
// missing is our bug.
#ifndef TROUPE_WORKER_INSTRUCTIONS_CALL_H_
#define TROUPE_WORKER_INSTRUCTIONS_CALL_H_

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "proto/program.pb.h"
#include "worker/model/model_unit.h"
#include "worker/rank/rank_state.h"

namespace troupe {

struct Call {
  RankState& state;
  const Program& program;
  const Instruction& instruction;
};

// A buffer among the call's reads and writes, by kind and unit (absent: the
// buffer has none), or null.
const Buffer* FindOperand(const Call& call, Buffer::Kind kind,
                          absl::optional<int> unit = absl::nullopt);

// Its memory in the step that the program runs for; null where the call has no
// such buffer.
char* Operand(const Call& call, Buffer::Kind kind,
              absl::optional<int> unit = absl::nullopt);
// The same, CHECKed to be there.
char* NeedOperand(const Call& call, Buffer::Kind kind,
                  absl::optional<int> unit = absl::nullopt);

// A buffer that the call reads one version of and writes another: the one that
// it writes.
char* NeedWritten(const Call& call, Buffer::Kind kind,
                  absl::optional<int> unit);

// The step that the instruction is part of, which may be a later one than that
// for which the program runs, and the data position when that begins.
int64_t StepOf(const Call& call);
int64_t SamplesBefore(const Call& call);

// What FORWARD, BACKWARD_INPUT and BACKWARD_WEIGHT hand to the unit.
const ModelUnit& UnitOf(const Call& call);
UnitBuffers BuffersOf(const Call& call);
MicroBatchContext ContextOf(const Call& call);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_CALL_H_
