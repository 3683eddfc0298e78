#include "worker/instructions/keep.h"

#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/optimizer_states.h"
#include "worker/instructions/copy_state.h"

namespace troupe {

absl::Status RunKeep(const Call& call) {
  const OperandBytes copy = BytesOfOperand(call, Instruction::COPY);
  CHECK(copy.data != nullptr) << "a KEEP that copies to nowhere";
  const Plan& plan = *call.state.plan;
  TierPort& port = call.state.PortOf(call.instruction.lane());
  const int unit = call.instruction.unit();
  char* to = copy.data;
  for (const StretchAtRest& at : call.state.AtRest(unit)) {
    if (at.rests.size() == 0) continue;
    const UnitFlatBuffers from = StateOf(call, at);
    if (at.stretch.frozen) {
      const int64_t bytes =
          at.rests.size() *
          static_cast<int64_t>(DTypeBytes(from.parameters_type));
      RETURN_IF_ERROR(port.Read(from.parameters, bytes, to));
      to += bytes;
      continue;
    }
    const Range all = {.begin = 0, .end = at.rests.size()};
    RETURN_IF_ERROR(CopyState(call, from, all, to).status());
    const int64_t states =
        StateElements(plan.job().optimizer(), plan.units(unit), at.rests);
    to += (all.size() + states) * static_cast<int64_t>(sizeof(float));
  }
  return port.Flush();
}

}  // namespace troupe
