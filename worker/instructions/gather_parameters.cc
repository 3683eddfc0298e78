#include "worker/instructions/gather_parameters.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/part_state.h"
#include "proto/plan/precision.h"
#include "worker/instructions/run_collective.h"
#include "worker/layers/element_dtype.h"

namespace troupe {

absl::Status RunGatherParameters(const Call& call) {
  RankState& state = call.state;
  const int unit = call.instruction.unit();
  const Placement& placement = state.PlacementOf(unit);
  const int over = placement.parts(call.instruction.part()).dealt();
  char* const whole = NeedOperand(call, Instruction::WEIGHTS);
  char* const slices = Operand(call, Instruction::SLICE);
  const DType element = DTypeOfElement(ParametersType(state.plan->units(unit)));
  const auto width = static_cast<int64_t>(DTypeBytes(element));
  for (const StretchAtRest& at : state.AtRest(unit)) {
    const Range& all = at.stretch.all;
    if (at.stretch.dealt != over || all.size() == 0) continue;
    const CommBuffer receive = {
        .data = whole +
                (slices == nullptr ? all.begin : at.stretch.unsharded) * width,
        .elements = all.size(),
        .element = element};
    CommBuffer send =
        receive.Slice(at.rests.begin - all.begin, at.rests.end - all.begin);
    if (slices != nullptr) send.data = slices + at.first * width;
    const std::vector<ElementRange> slices_of_members =
        GivenSlices(*state.plan, at.stretch);
    RETURN_IF_ERROR(
        state.communicators.at(call.instruction.group())
            ->AllGather({.send = send,
                         .receive = receive,
                         .row_elements = kLineElements,
                         .ranges = slices_of_members},
                        CommOptionsOf(
                            call, absl::StrCat("parameters of unit ", unit))));
  }
  return absl::OkStatus();
}

}  // namespace troupe
