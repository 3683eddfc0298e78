#include "proto/plan/span.h"

#include "proto/plan/operand.h"

namespace troupe {

Span SpanOf(const Instruction& instruction, int index) {
  Span span;
  span.set_instruction(index);
  span.set_kind(instruction.kind());
  span.set_lane(instruction.lane());
  if (instruction.has_unit()) span.set_unit(instruction.unit());
  span.set_unit_count(instruction.unit_count());
  if (instruction.has_micro_batch()) {
    span.set_micro_batch(instruction.micro_batch());
  }
  if (instruction.has_peer()) span.set_peer(instruction.peer());
  span.set_ahead(instruction.ahead());
  if (instruction.kind() == Instruction::EXCHANGE ||
      instruction.kind() == Instruction::REDUCE_GRADS) {
    span.set_group(instruction.group());
  }
  if (instruction.has_exchange()) {
    span.set_exchange(ExchangeNumber(instruction.exchange()));
  }
  return span;
}

}  // namespace troupe
