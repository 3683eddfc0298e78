#include "worker/instructions/snapshot.h"

#include <string>
#include <utility>
#include <vector>

#include "proto/base/status.h"
#include "proto/plan/at_rest.h"
#include "proto/plan/islands.h"
#include "proto/plan/optimizer_states.h"
#include "worker/instructions/copy_state.h"

namespace troupe {
namespace {

constexpr int64_t kBytesCopied = sizeof(float);

// Of the copy, what the parts before this one take.
int64_t BytesBefore(const Call& call) {
  const RankState& state = call.state;
  const Plan& plan = *state.plan;
  const int unit = call.instruction.unit();
  const Placement& placement = state.PlacementOf(unit);
  int64_t elements = 0;
  for (int p = 0; p < call.instruction.part(); ++p) {
    const Range duty = DutyOf(plan, placement, p, state.rank());
    elements += duty.size();
    if (plan.units(unit).parts(p).frozen()) continue;
    elements += StateElements(plan.job().optimizer(), plan.units(unit), duty);
  }
  return elements * kBytesCopied;
}

}  // namespace

absl::Status RunSnapshot(const Call& call) {
  RankState& state = call.state;
  const Unit& unit = state.plan->units(call.instruction.unit());
  const Range duty = DutyOf(call);
  if (duty.size() == 0) return absl::OkStatus();
  UnitFlatBuffers memory = StateOf(call, StretchOf(call));
  const Range rests = *memory.holds;
  char* copy = Operand(call, Instruction::COPY);
  if (copy != nullptr) {
    copy += BytesBefore(call);
    ASSIGN_OR_RETURN(memory, CopyState(call, memory, duty, copy));
  }
  const Range range = {rests.begin + duty.begin, rests.begin + duty.end};
  for (StateTensor& tensor : UnitStateTensors(
           state.plan->job().optimizer(), unit, memory, state.place(), range)) {
    absl::optional<std::string> name =
        SavedName(*state.plan, state.rank(),
                  unit.parts(call.instruction.part()), tensor.name);
    if (!name.has_value()) continue;
    tensor.name = *std::move(name);
    state.snapshot.push_back(std::move(tensor));
  }
  return absl::OkStatus();
}

}  // namespace troupe
