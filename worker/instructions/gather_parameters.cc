#include "worker/instructions/gather_parameters.h"

#include <tuple>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/at_rest.h"
#include "proto/plan/precision.h"
#include "proto/plan/trained.h"
#include "worker/instructions/run_collective.h"

namespace troupe {

absl::Status RunGatherParameters(const Call& call) {
  RankState& state = call.state;
  const int unit = call.instruction.unit();
  const Unit& spec = state.plan->units(unit);
  const CommBuffer whole = {
      .data = NeedOperand(call, Instruction::WEIGHTS),
      .elements = spec.flat_elements(),
      .element = ElementOf(ComputeType(state.plan->job().training()))};
  const auto width = static_cast<int64_t>(ElementBytes(whole.element));
  char* apart = Operand(call, Instruction::SLICE);
  const bool frozen_too = DealsFrozen(*state.plan, state.PlacementOf(unit));
  for (const auto& [all, own, dealt] :
       {std::tuple(TrainedRange(spec), state.AtRest(unit), true),
        {FrozenRange(spec), state.FrozenAtRest(unit), frozen_too}}) {
    if (all.size() == 0 || !dealt) continue;
    CommBuffer slice = whole.Slice(own.begin, own.end);
    if (apart != nullptr) {
      slice.data = apart;
      apart += own.size() * width;
    }
    RETURN_IF_ERROR(
        state.communicators.at(call.instruction.group())
            ->AllGather({.send = slice,
                         .receive = whole.Slice(all.begin, all.end),
                         .row_elements = kLineElements},
                        CommOptionsOf(
                            call, absl::StrCat("parameters of unit ", unit))));
  }
  return absl::OkStatus();
}

}  // namespace troupe
