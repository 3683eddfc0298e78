#include "worker/instructions/scatter_grads.h"

#include "absl/strings/str_cat.h"
#include "ops/reduce.h"
#include "ops/tensor.h"
#include "proto/base/status.h"

namespace troupe {

absl::Status RunScatterGrads(const Call& call) {
  RankState& state = call.state;
  const int unit = call.instruction.unit();
  char* const whole = NeedOperand(call, Instruction::WEIGHT_GRADIENTS);
  const int64_t elements = state.plan->units(unit).flat_elements();
  const Range own = state.AtRest(unit);
  const CommBuffer send = {
      .data = whole, .elements = elements, .element = Element::kF32};
  RETURN_IF_ERROR(
      state.communicators.at(call.instruction.group())
          ->ReduceScatter({.send = send,
                           .receive = send.Slice(own.begin, own.end),
                           .row_elements = kLineElements},
                          ReduceOp::kSum,
                          {.name = absl::StrCat("gradients of unit ", unit),
                           .timeout = state.collective_timeout}));
  char* const sum = whole + own.begin * sizeof(float);
  if (char* const slice = Operand(call, Instruction::SLICE)) {
    if (own.size() == 0) return absl::OkStatus();
    if (AccessTo(call, Instruction::SLICE) == Instruction::WRITE) {
      state.device.CopyWithin(slice, sum, own.size() * sizeof(float));
      return absl::OkStatus();
    }
    Add(state.device, {.x = Tensor(sum, DType::kF32, {own.size()}),
                       .y = Tensor(slice, DType::kF32, {own.size()})});
    return absl::OkStatus();
  }
  state.device.Zero(whole, own.begin * sizeof(float));
  state.device.Zero(whole + own.end * sizeof(float),
                    (elements - own.end) * sizeof(float));
  return absl::OkStatus();
}

}  // namespace troupe
