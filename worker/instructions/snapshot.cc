#include "worker/instructions/snapshot.h"

#include <utility>
#include <vector>

#include "proto/base/status.h"
#include "proto/plan/precision.h"

namespace troupe {
namespace {

constexpr int64_t kBytes = sizeof(float);

// The rank's slice of the part, in elements of the unit's flat buffer.
Range SliceOfPart(const Call& call, const Unit& unit) {
  const Range part = RangeOfPart(unit, call.instruction.part());
  const Range slice = SliceOf(call, part.size());
  return {part.begin + slice.begin, part.begin + slice.end};
}

// Lays this range of parameters and optimizer state behind one another.
UnitFlatBuffers CopyState(const Call& call, const UnitFlatBuffers& from,
                          const Range& range, char* copy) {
  Device& device = call.state.device;
  const Unit& unit = call.state.plan->units(call.instruction.unit());
  const int64_t bytes = range.size() * kBytes;
  UnitFlatBuffers to = {.parameters = copy, .holds = range};
  device.CopyToHost(copy, from.parameters + range.begin * kBytes, bytes);
  if (from.optimizer_state == nullptr) return to;
  to.optimizer_state = copy + bytes;
  const int moments = OptimizerMoments(call.state.plan->job().optimizer());
  for (int m = 0; m < moments; ++m) {
    const int64_t first = m * unit.flat_elements() + range.begin;
    device.CopyToHost(to.optimizer_state + m * bytes,
                      from.optimizer_state + first * kBytes, bytes);
  }
  return to;
}

}  // namespace

absl::Status RunSnapshot(const Call& call) {
  RankState& state = call.state;
  const Unit& unit = state.plan->units(call.instruction.unit());
  const Range range = SliceOfPart(call, unit);
  if (range.size() == 0) return absl::OkStatus();
  char* const master = Operand(call, Instruction::MASTER);
  UnitFlatBuffers memory = {
      .parameters =
          master != nullptr ? master : NeedOperand(call, Instruction::WEIGHTS),
      .optimizer_state = Operand(call, Instruction::MOMENTS)};
  char* const copy = BytesOfOperand(call, Instruction::COPY).data;
  if (copy != nullptr) {
    memory = CopyState(call, memory, range, copy);
    RETURN_IF_ERROR(state.device.Synchronize());
  }
  for (StateTensor& tensor : UnitStateTensors(
           state.plan->job().optimizer(), unit, memory, state.place(), range)) {
    tensor.on_host = copy != nullptr;
    state.snapshot.push_back(std::move(tensor));
  }
  return absl::OkStatus();
}

}  // namespace troupe
