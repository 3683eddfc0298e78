#include "worker/instructions/push.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "ops/reduce.h"
#include "ops/tensor.h"
#include "proto/base/status.h"
#include "proto/plan/part_state.h"
#include "proto/plan/precision.h"
#include "proto/plan/served.h"
#include "proto/plan/trained.h"
#include "worker/instructions/run_collective.h"
#include "worker/layers/element_dtype.h"

namespace troupe {

absl::Status RunPush(const Call& call) {
  RankState& state = call.state;
  const Plan& plan = *state.plan;
  const int unit = call.instruction.unit();
  const Placement& placement = state.PlacementOf(unit);
  const DType element = DTypeOfElement(GradientsType(plan.units(unit)));
  const int64_t stride = PushedStride(plan, placement);
  const Range own = ServedSlice(plan, placement, state.rank());
  char* const gradients = Operand(call, Instruction::WEIGHT_GRADIENTS);
  char* const pushed = Operand(call, Instruction::PUSHED);
  std::vector<ElementRange> sent, received;
  int64_t replicas = 0;
  for (const ServedMember& member :
       ServedMembers(plan, placement, state.rank())) {
    const bool receives = pushed != nullptr && !member.is_server;
    const int64_t begin = receives ? stride * replicas++ : 0;
    received.push_back({begin, receives ? begin + own.size() : begin});
    sent.push_back(gradients == nullptr
                       ? ElementRange()
                       : ElementRange{member.slice.begin, member.slice.end});
  }
  const int64_t all = TrainedElements(plan.units(unit));
  RETURN_IF_ERROR(
      state.communicators.at(call.instruction.group())
          ->AllToAll(
              {.send = {.data = gradients,
                        .elements = gradients == nullptr ? 0 : all,
                        .element = element},
               .receive = {.data = pushed,
                           .elements = stride * replicas,
                           .element = element},
               .send_ranges = sent,
               .receive_ranges = received},
              CommOptionsOf(call, absl::StrCat("gradients of unit ", unit))));
  if (pushed == nullptr || own.size() == 0) return absl::OkStatus();
  char* const sum = NeedOperand(call, Instruction::SLICE);
  const DType type = state.TypeOfGradients(unit);
  const auto width = static_cast<int64_t>(DTypeBytes(type));
  state.device.CopyWithin(sum, pushed, own.size() * width);
  for (int64_t replica = 1; replica < replicas; ++replica) {
    Add(state.device,
        {.x = Tensor(pushed + replica * stride * width, type, {own.size()}),
         .y = Tensor(sum, type, {own.size()})});
  }
  return absl::OkStatus();
}

}  // namespace troupe
