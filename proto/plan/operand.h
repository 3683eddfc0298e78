// What an instruction does with its operands.
#ifndef TROUPE_PROTO_PLAN_OPERAND_H_
#define TROUPE_PROTO_PLAN_OPERAND_H_

#include <algorithm>
#include <cstdint>

#include "proto/plan/buffer_kind.h"
#include "proto/program.pb.h"

namespace troupe {

// Whether it uses what the buffer holds, and whether it changes that. What adds
// does both.
inline bool Reads(const Instruction::Operand& operand) {
  return operand.access() != Instruction::WRITE;
}
inline bool Writes(const Instruction::Operand& operand) {
  return operand.access() != Instruction::READ;
}

// The bytes of the buffer that it uses.
struct BytesUsed {
  int64_t begin = 0;
  int64_t end = 0;
};
inline BytesUsed BytesOf(const Instruction::Operand& operand,
                         const Buffer& buffer) {
  const bool to_end = operand.bytes() == 0;
  return {operand.offset(),
          to_end ? buffer.bytes() : operand.offset() + operand.bytes()};
}
// All of the buffer, and those that the operand uses, in its slot: of a cache
// line all, as nobody else has a part of it.
inline BytesUsed PlaceOf(const Buffer& buffer) {
  return {buffer.offset(), buffer.offset() + buffer.bytes()};
}
inline BytesUsed PlaceOf(const Instruction::Operand& operand,
                         const Buffer& buffer) {
  const BytesUsed bytes = BytesOf(operand, buffer);
  return {buffer.offset() + bytes.begin,
          buffer.offset() +
              std::min(buffer.bytes(), TierAligned(bytes.end, DEVICE))};
}
inline bool Covers(const BytesUsed& outer, const BytesUsed& inner) {
  return outer.begin <= inner.begin && inner.end <= outer.end;
}

// Whether it copies a value between neighbouring tiers, FROM one TO the other.
inline bool IsMove(Instruction::Kind kind) {
  return kind == Instruction::FETCH || kind == Instruction::EVICT;
}

// One number for an exchange of a unit: its op's, or -1 - that where it is of
// the gradients. And back.
inline int ExchangeNumber(const Instruction::Exchange& exchange) {
  return exchange.backward() ? -1 - exchange.op() : exchange.op();
}
inline void SetExchangeNumber(int number, Instruction::Exchange& exchange) {
  exchange.set_backward(number < 0);
  exchange.set_op(number < 0 ? -1 - number : number);
}

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_OPERAND_H_
