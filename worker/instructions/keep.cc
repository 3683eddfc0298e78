#include "worker/instructions/keep.h"

#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/optimizer_states.h"
#include "worker/instructions/copy_state.h"

namespace troupe {

absl::Status RunKeep(const Call& call) {
  const OperandBytes copy = BytesOfOperand(call, Instruction::COPY);
  CHECK(copy.data != nullptr) << "a KEEP that copies to nowhere";
  const auto [trained, frozen] = StateOf(call);
  char* to = copy.data;
  if (trained.holds->size() > 0) {
    const Range all = {.begin = 0, .end = trained.holds->size()};
    RETURN_IF_ERROR(CopyState(call, trained, all, to).status());
    const Plan& plan = *call.state.plan;
    const int64_t states =
        StateElements(plan.job().optimizer(),
                      plan.units(call.instruction.unit()), *trained.holds);
    to += (all.size() + states) * static_cast<int64_t>(sizeof(float));
  }
  if (frozen.holds->size() == 0) return absl::OkStatus();
  TierPort& port = call.state.PortOf(call.instruction.lane());
  RETURN_IF_ERROR(
      port.Read(frozen.parameters,
                frozen.holds->size() *
                    static_cast<int64_t>(DTypeBytes(frozen.parameters_type)),
                to));
  return port.Flush();
}

}  // namespace troupe
