#include "worker/instructions/pull.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/part_state.h"
#include "proto/plan/precision.h"
#include "proto/plan/served.h"
#include "proto/plan/trained.h"
#include "worker/instructions/run_collective.h"
#include "worker/layers/element_dtype.h"

namespace troupe {

absl::Status RunPull(const Call& call) {
  RankState& state = call.state;
  const Plan& plan = *state.plan;
  const int unit = call.instruction.unit();
  const DType element = DTypeOfElement(ParametersType(plan.units(unit)));
  const Placement& placement = state.PlacementOf(unit);
  const int64_t own = ServedSlice(plan, placement, state.rank()).size();
  char* const slice = Operand(call, Instruction::SLICE);
  char* const whole = Operand(call, Instruction::WEIGHTS);
  std::vector<ElementRange> sent, received;
  for (const ServedMember& member :
       ServedMembers(plan, placement, state.rank())) {
    const bool sends = slice != nullptr && !member.is_server;
    sent.push_back({0, sends ? own : 0});
    received.push_back(
        whole == nullptr ? ElementRange()
                         : ElementRange{member.slice.begin, member.slice.end});
  }
  const int64_t all = TrainedElements(plan.units(unit));
  return state.communicators.at(call.instruction.group())
      ->AllToAll(
          {.send = {.data = slice,
                    .elements = slice == nullptr ? 0 : own,
                    .element = element},
           .receive = {.data = whole,
                       .elements = whole == nullptr ? 0 : all,
                       .element = element},
           .send_ranges = sent,
           .receive_ranges = received},
          CommOptionsOf(call, absl::StrCat("parameters of unit ", unit)));
}

}  // namespace troupe
