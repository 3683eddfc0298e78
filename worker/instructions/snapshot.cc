#include "worker/instructions/snapshot.h"

#include <vector>

#include "proto/base/status.h"

namespace troupe {
namespace {

// Lays parameters and optimizer state behind one another in `copy`.
UnitFlatBuffers CopyState(const Call& call, const UnitFlatBuffers& from,
                          char* copy) {
  const int unit = call.instruction.unit();
  const Unit& spec = call.state.plan->units(unit);
  const int64_t parameter_bytes = spec.flat_elements() * sizeof(float);
  UnitFlatBuffers to = {.parameters = copy};
  call.state.device.CopyToHost(to.parameters, from.parameters, parameter_bytes);
  if (from.optimizer_state != nullptr) {
    to.optimizer_state = copy + parameter_bytes;
    call.state.device.CopyToHost(
        to.optimizer_state, from.optimizer_state,
        FindBuffer(call, Instruction::MOMENTS)->bytes());
  }
  return to;
}

}  // namespace

absl::Status RunSnapshot(const Call& call) {
  RankState& state = call.state;
  const int unit = call.instruction.unit();
  char* const master = Operand(call, Instruction::MASTER);
  UnitFlatBuffers memory = {
      .parameters =
          master != nullptr ? master : NeedOperand(call, Instruction::WEIGHTS),
      .optimizer_state = Operand(call, Instruction::MOMENTS)};
  char* copy = Operand(call, Instruction::COPY);
  if (copy != nullptr) {
    memory = CopyState(call, memory, copy);
    RETURN_IF_ERROR(state.device.Synchronize());
  }
  for (StateTensor& tensor :
       UnitStateTensors(state.plan->job().optimizer(), state.plan->units(unit),
                        memory, state.place(), call.instruction.part())) {
    tensor.on_host = copy != nullptr;
    state.snapshot.push_back(std::move(tensor));
  }
  return absl::OkStatus();
}

}  // namespace troupe
