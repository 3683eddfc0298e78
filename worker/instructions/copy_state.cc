#include "worker/instructions/copy_state.h"

#include "proto/base/status.h"
#include "proto/plan/at_rest.h"
#include "proto/plan/optimizer_states.h"

namespace troupe {
namespace {

constexpr int64_t kBytes = sizeof(float);

}  // namespace

UnitFlatBuffers StateOf(const Call& call, const StretchAtRest& at) {
  const TierAddress weights = RestAddress(call, Instruction::WEIGHTS, at);
  if (at.stretch.frozen) {
    return {
        .parameters = weights,
        .parameters_type = call.state.TypeOfParameters(call.instruction.unit()),
        .holds = at.rests};
  }
  const TierAddress master = RestAddress(call, Instruction::MASTER, at);
  return {.parameters = master ? master : weights,
          .optimizer_state = RestAddress(call, Instruction::MOMENTS, at),
          .holds = at.rests};
}

absl::StatusOr<UnitFlatBuffers> CopyState(const Call& call,
                                          const UnitFlatBuffers& from,
                                          const Range& range, char* copy) {
  const Plan& plan = *call.state.plan;
  TierPort& port = call.state.PortOf(call.instruction.lane());
  const int64_t bytes = range.size() * kBytes;
  const Range& rests = *from.holds;
  UnitFlatBuffers to = {
      .parameters = TierAddress::InHost(copy),
      .holds = Range{rests.begin + range.begin, rests.begin + range.end}};
  RETURN_IF_ERROR(
      port.Read(from.parameters + range.begin * kBytes, bytes, copy));
  if (from.optimizer_state) {
    to.optimizer_state = to.parameters + bytes;
    int64_t before = 0;  // elements of the states before, there
    char* next = to.optimizer_state.memory();
    for (const UnitState& state : UnitStates(
             plan.job().optimizer(), plan.units(call.instruction.unit()))) {
      const int64_t first =
          before + state.ElementsIn({rests.begin, to.holds->begin});
      const int64_t wanted = state.ElementsIn(*to.holds);
      if (wanted > 0) {
        RETURN_IF_ERROR(port.Read(from.optimizer_state + first * kBytes,
                                  wanted * kBytes, next));
      }
      before += state.ElementsIn(rests);
      next += wanted * kBytes;
    }
  }
  // The next step changes what was read.
  RETURN_IF_ERROR(port.Flush());
  return to;
}

}  // namespace troupe
