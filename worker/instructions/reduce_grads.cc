#include "worker/instructions/reduce_grads.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/plan/at_rest.h"
#include "proto/plan/part_state.h"
#include "proto/plan/precision.h"
#include "proto/plan/reduced_range.h"
#include "worker/instructions/run_collective.h"
#include "worker/layers/element_dtype.h"

namespace troupe {

absl::Status RunReduceGrads(const Call& call) {
  RankState& state = call.state;
  const int first = call.instruction.unit();
  const int count = std::max(1, call.instruction.unit_count());
  const DType element = DTypeOfElement(GradientsType(state.plan->units(first)));
  const int64_t width = static_cast<int64_t>(DTypeBytes(element));
  char* begin = nullptr;
  int64_t elements = 0;
  for (const Instruction::Operand& operand : call.instruction.operands()) {
    const Buffer& buffer = call.program.buffers(operand.buffer());
    const StretchAtRest at =
        AtRestWith(*state.plan, state.PlacementOf(buffer.unit()),
                   call.instruction.part(), state.rank());
    const Range part =
        Both(ReducedRange(state.plan->units(buffer.unit()), call.instruction),
             at.rests);
    char* const gradients =
        state.RestIn(buffer, AddressOf(call, buffer), at).memory() +
        (part.begin - at.rests.begin) * width;
    if (begin == nullptr) begin = gradients;
    CHECK_EQ(gradients, begin + elements * width)
        << "gradients of unit " << buffer.unit()
        << " are not where those before end";
    elements += part.size();
  }
  // Nothing was added here: zeros are this rank's summand.
  if (AccessTo(call, Instruction::WEIGHT_GRADIENTS) == Instruction::WRITE) {
    state.device.Zero(begin, elements * width);
  }
  return state.communicators.at(call.instruction.group())
      ->AllReduce(
          {.data = begin, .elements = elements, .element = element},
          ReduceOp::kSum,
          CommOptionsOf(call, count == 1
                                  ? absl::StrCat("gradients of unit ", first)
                                  : absl::StrCat("gradients of units ", first,
                                                 " to ", first + count - 1)));
}

}  // namespace troupe
