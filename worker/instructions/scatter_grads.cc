#include "worker/instructions/scatter_grads.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ops/reduce.h"
#include "ops/tensor.h"
#include "proto/base/status.h"
#include "proto/plan/part_state.h"
#include "proto/plan/precision.h"
#include "worker/instructions/run_collective.h"
#include "worker/layers/element_dtype.h"

namespace troupe {
namespace {

// What is scattered of the unit, and whether that is all that is trained of it.
struct Scattered {
  std::vector<StretchAtRest> stretches;
  bool all = true;
};
Scattered ScatteredBy(const Call& call) {
  const int unit = call.instruction.unit();
  const Placement& placement = call.state.PlacementOf(unit);
  const int over = placement.parts(call.instruction.part()).dealt();
  Scattered scattered;
  for (const StretchAtRest& at : call.state.AtRest(unit)) {
    if (at.stretch.frozen || at.stretch.all.size() == 0) continue;
    if (at.stretch.dealt == over) {
      scattered.stretches.push_back(at);
    } else {
      scattered.all = false;
    }
  }
  return scattered;
}

}  // namespace

absl::Status RunScatterGrads(const Call& call) {
  RankState& state = call.state;
  const int unit = call.instruction.unit();
  char* const whole = NeedOperand(call, Instruction::WEIGHT_GRADIENTS);
  char* const slices = Operand(call, Instruction::SLICE);
  const DType type = state.TypeOfGradients(unit);
  const int64_t width = static_cast<int64_t>(DTypeBytes(type));
  const Scattered scattered = ScatteredBy(call);
  bool begins = AccessTo(call, Instruction::SLICE) == Instruction::WRITE;
  if (begins && !scattered.all) {
    const Buffer& buffer = *FindBuffer(call, Instruction::SLICE);
    state.device.Zero(slices, buffer.bytes());
    begins = false;
  }
  for (const StretchAtRest& at : scattered.stretches) {
    const Range& all = at.stretch.all;
    char* const begin =
        whole + (slices == nullptr ? all.begin : at.stretch.unsharded) * width;
    const Range own = {at.rests.begin - all.begin, at.rests.end - all.begin};
    const CommBuffer send = {
        .data = begin,
        .elements = all.size(),
        .element = DTypeOfElement(GradientsType(state.plan->units(unit)))};
    const std::vector<ElementRange> slices_of_members =
        GivenSlices(*state.plan, at.stretch);
    RETURN_IF_ERROR(
        state.communicators.at(call.instruction.group())
            ->ReduceScatter(
                {.send = send,
                 .receive = send.Slice(own.begin, own.end),
                 .row_elements = kLineElements,
                 .ranges = slices_of_members},
                ReduceOp::kSum,
                CommOptionsOf(call, absl::StrCat("gradients of unit ", unit))));
    char* const sum = begin + own.begin * width;
    if (slices == nullptr) {
      state.device.Zero(begin, own.begin * width);
      state.device.Zero(begin + own.end * width,
                        (all.size() - own.end) * width);
      continue;
    }
    if (own.size() == 0) continue;
    char* const slice = slices + at.first * width;
    if (begins) {
      state.device.CopyWithin(slice, sum, own.size() * width);
      continue;
    }
    Add(state.device, {.x = Tensor(sum, type, {own.size()}),
                       .y = Tensor(slice, type, {own.size()})});
  }
  return absl::OkStatus();
}

}  // namespace troupe
