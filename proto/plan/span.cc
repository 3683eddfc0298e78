#include "proto/plan/span.h"

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
    const Instruction::Exchange& exchange = instruction.exchange();
    span.set_exchange(exchange.backward() ? -1 - exchange.op() : exchange.op());
  }
  return span;
}

}  // namespace troupe
