#include "worker/instructions/mirror.h"

#include "proto/plan/copies.h"

namespace troupe {
namespace {

CommBuffer Bytes(const Call& call, Instruction::Part part) {
  const OperandBytes operand = BytesOfOperand(call, part);
  return {
      .data = operand.data, .elements = operand.bytes, .element = DType::kU8};
}

}  // namespace

// The group is of all ranks, in their order.
absl::Status RunMirror(const Call& call) {
  const RankState& state = call.state;
  return state.communicators.at(call.instruction.group())
      ->Shift({.send = Bytes(call, Instruction::FROM),
               .to = MirrorOf(*state.plan, state.rank()),
               .receive = Bytes(call, Instruction::TO),
               .from = MirroredBy(*state.plan, state.rank())},
              CommOptionsOf(call, "copies of the ranks' states"));
}

}  // namespace troupe
