#include "worker/instructions/scatter_grads.h"

#include "absl/strings/str_cat.h"
#include "ops/reduce.h"
#include "ops/tensor.h"
#include "proto/base/status.h"
#include "proto/plan/precision.h"
#include "proto/plan/trained.h"
#include "worker/instructions/run_collective.h"

namespace troupe {

absl::Status RunScatterGrads(const Call& call) {
  RankState& state = call.state;
  const int unit = call.instruction.unit();
  char* const whole = NeedOperand(call, Instruction::WEIGHT_GRADIENTS);
  const int64_t elements = TrainedElements(state.plan->units(unit));
  const Range own = state.AtRest(unit);
  const DType type = state.GradientsType();
  const int64_t width = static_cast<int64_t>(DTypeBytes(type));
  const CommBuffer send = {
      .data = whole,
      .elements = elements,
      .element = ElementOf(GradientType(state.plan->job().training()))};
  RETURN_IF_ERROR(
      state.communicators.at(call.instruction.group())
          ->ReduceScatter(
              {.send = send,
               .receive = send.Slice(own.begin, own.end),
               .row_elements = kLineElements},
              ReduceOp::kSum,
              CommOptionsOf(call, absl::StrCat("gradients of unit ", unit))));
  char* const sum = whole + own.begin * width;
  if (char* const slice = Operand(call, Instruction::SLICE)) {
    if (own.size() == 0) return absl::OkStatus();
    if (AccessTo(call, Instruction::SLICE) == Instruction::WRITE) {
      state.device.CopyWithin(slice, sum, own.size() * width);
      return absl::OkStatus();
    }
    Add(state.device, {.x = Tensor(sum, type, {own.size()}),
                       .y = Tensor(slice, type, {own.size()})});
    return absl::OkStatus();
  }
  state.device.Zero(whole, own.begin * width);
  state.device.Zero(whole + own.end * width, (elements - own.end) * width);
  return absl::OkStatus();
}

}  // namespace troupe
