#include "worker/instructions/gather_parameters.h"

#include "absl/strings/str_cat.h"
#include "proto/plan/precision.h"
#include "worker/instructions/run_collective.h"

namespace troupe {

absl::Status RunGatherParameters(const Call& call) {
  RankState& state = call.state;
  const int unit = call.instruction.unit();
  const CommBuffer whole = {
      .data = NeedOperand(call, Instruction::WEIGHTS),
      .elements = state.plan->units(unit).flat_elements(),
      .element = ElementOf(ComputeType(state.plan->job().training()))};
  const Range own = state.AtRest(unit);
  CommBuffer slice = whole.Slice(own.begin, own.end);
  if (char* const apart = Operand(call, Instruction::SLICE)) {
    slice.data = apart;
  }
  return state.communicators.at(call.instruction.group())
      ->AllGather(
          {.send = slice, .receive = whole, .row_elements = kLineElements},
          CommOptionsOf(call, absl::StrCat("parameters of unit ", unit)));
}

}  // namespace troupe
