#include "worker/instructions/reduce_grads.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/base/check.h"

namespace troupe {
namespace {

// The bytes of a unit's flat buffer in memory, alignment included.
int64_t SpanBytes(int64_t bytes) {
  return (bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
}

}  // namespace

absl::Status RunReduceGrads(const Call& call) {
  RankState& state = call.state;
  const int first = call.instruction.unit();
  const int count = std::max(1, call.instruction.unit_count());
  char* begin = nullptr;
  int64_t bytes = 0;
  for (const Instruction::Operand& operand : call.instruction.operands()) {
    const Buffer& buffer = call.program.buffers(operand.buffer());
    char* const gradients = MemoryOf(call, buffer) + operand.offset();
    if (begin == nullptr) begin = gradients;
    CHECK_EQ(gradients, begin + bytes) << "gradients of unit " << buffer.unit()
                                       << " are not where those before end";
    bytes += operand.bytes() > 0 ? operand.bytes() : SpanBytes(buffer.bytes());
  }
  return state.communicators.at(call.instruction.group())
      ->AllReduce(
          {.data = begin,
           .elements = bytes / static_cast<int64_t>(sizeof(float)),
           .element = Element::kF32},
          ReduceOp::kSum,
          {.name = count == 1 ? absl::StrCat("gradients of unit ", first)
                              : absl::StrCat("gradients of units ", first,
                                             " to ", first + count - 1),
           .timeout = state.collective_timeout});
}

}  // namespace troupe
