// In which steps an instruction does something (Instruction.When). In others it
// is over as soon as its lane comes to it, on all ranks that would meet in it.
#ifndef TROUPE_PROTO_PLAN_WHEN_H_
#define TROUPE_PROTO_PLAN_WHEN_H_

#include <cstdint>

#include "proto/program.pb.h"

namespace troupe {

// `last_step`: of the job (last_step.h).
inline bool RunsIn(const Instruction& instruction, int64_t step,
                   int64_t last_step) {
  if (!instruction.has_when()) return true;
  const Instruction::When& when = instruction.when();
  if (when.last() && step == last_step) return true;
  return when.every() > 0 && step % when.every() == when.offset();
}

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_WHEN_H_
