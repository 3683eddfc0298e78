#include "worker/instructions/snapshot.h"

#include <utility>
#include <vector>

#include "proto/base/status.h"
#include "proto/plan/at_rest.h"
#include "proto/plan/precision.h"

namespace troupe {
namespace {

constexpr int64_t kBytes = sizeof(float);

// Lays what this rank has to write of parameters and optimizer state behind one
// another.
absl::StatusOr<UnitFlatBuffers> CopyState(const Call& call,
                                          const UnitFlatBuffers& from,
                                          const Range& duty, char* copy) {
  TierPort& port = call.state.PortOf(call.instruction.lane());
  const int64_t bytes = duty.size() * kBytes;
  const Range& rests = *from.holds;
  UnitFlatBuffers to = {
      .parameters = TierAddress::InHost(copy),
      .holds = Range{rests.begin + duty.begin, rests.begin + duty.end}};
  RETURN_IF_ERROR(
      port.Read(from.parameters + duty.begin * kBytes, bytes, copy));
  if (from.optimizer_state) {
    to.optimizer_state = to.parameters + bytes;
    const int moments = OptimizerMoments(call.state.plan->job().optimizer());
    for (int m = 0; m < moments; ++m) {
      const int64_t first = m * rests.size() + duty.begin;
      RETURN_IF_ERROR(port.Read(from.optimizer_state + first * kBytes, bytes,
                                to.optimizer_state.memory() + m * bytes));
    }
  }
  // The next step changes what was read.
  RETURN_IF_ERROR(port.Flush());
  return to;
}

// Of the copy, what the parts before this one take.
int64_t BytesBefore(const Call& call) {
  const RankState& state = call.state;
  const Placement& placement = state.PlacementOf(call.instruction.unit());
  int64_t elements = 0;
  for (int p = 0; p < call.instruction.part(); ++p) {
    elements += DutyOf(*state.plan, placement, p, state.rank()).size();
  }
  return elements * kBytes *
         (1 + OptimizerMoments(state.plan->job().optimizer()));
}

}  // namespace

absl::Status RunSnapshot(const Call& call) {
  RankState& state = call.state;
  const Unit& unit = state.plan->units(call.instruction.unit());
  const Range duty = DutyOf(call);
  if (duty.size() == 0) return absl::OkStatus();
  const Range rests = state.AtRest(call.instruction.unit());
  const TierAddress master = RestAddress(call, Instruction::MASTER);
  UnitFlatBuffers memory = {
      .parameters = master ? master : RestAddress(call, Instruction::WEIGHTS),
      .optimizer_state = RestAddress(call, Instruction::MOMENTS),
      .holds = rests};
  char* copy = Operand(call, Instruction::COPY);
  if (copy != nullptr) {
    copy += BytesBefore(call);
    ASSIGN_OR_RETURN(memory, CopyState(call, memory, duty, copy));
  }
  const Range range = {rests.begin + duty.begin, rests.begin + duty.end};
  for (StateTensor& tensor : UnitStateTensors(
           state.plan->job().optimizer(), unit, memory, state.place(), range)) {
    state.snapshot.push_back(std::move(tensor));
  }
  return absl::OkStatus();
}

}  // namespace troupe
