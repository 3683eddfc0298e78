// What an instruction does with its operands.
#ifndef TROUPE_PROTO_PLAN_OPERAND_H_
#define TROUPE_PROTO_PLAN_OPERAND_H_

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

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_OPERAND_H_
