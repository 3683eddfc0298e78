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
UnitFlatBuffers CopyState(const Call& call, const UnitFlatBuffers& from,
                          const Range& duty, char* copy) {
  Device& device = call.state.device;
  const int64_t bytes = duty.size() * kBytes;
  const Range& rests = *from.holds;
  UnitFlatBuffers to = {
      .parameters = copy,
      .holds = Range{rests.begin + duty.begin, rests.begin + duty.end}};
  device.CopyToHost(copy, from.parameters + duty.begin * kBytes, bytes);
  if (from.optimizer_state == nullptr) return to;
  to.optimizer_state = copy + bytes;
  const int moments = OptimizerMoments(call.state.plan->job().optimizer());
  for (int m = 0; m < moments; ++m) {
    const int64_t first = m * rests.size() + duty.begin;
    device.CopyToHost(to.optimizer_state + m * bytes,
                      from.optimizer_state + first * kBytes, bytes);
  }
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
  char* const master = RestOf(call, Instruction::MASTER);
  UnitFlatBuffers memory = {
      .parameters =
          master != nullptr ? master : RestOf(call, Instruction::WEIGHTS),
      .optimizer_state = RestOf(call, Instruction::MOMENTS),
      .holds = rests};
  char* copy = Operand(call, Instruction::COPY);
  if (copy != nullptr) {
    copy += BytesBefore(call);
    memory = CopyState(call, memory, duty, copy);
    RETURN_IF_ERROR(state.device.Synchronize());
  }
  const Range range = {rests.begin + duty.begin, rests.begin + duty.end};
  for (StateTensor& tensor : UnitStateTensors(
           state.plan->job().optimizer(), unit, memory, state.place(), range)) {
    tensor.on_host = copy != nullptr;
    state.snapshot.push_back(std::move(tensor));
  }
  return absl::OkStatus();
}

}  // namespace troupe
