#include "scheduler/passes/derive_after.h"

#include <map>
#include <utility>
#include <vector>

#include "proto/plan/buffer_kind.h"
#include "proto/plan/operand.h"
#include "proto/plan/program_order.h"

namespace troupe {
namespace {

// Who used a slot last.
struct LastUse {
  int writer = -1;
  std::vector<int> readers;  // since that write
};

void Derive(const Role& role, Program& program) {
  std::map<std::pair<int, int>, LastUse> uses;  // by slot and copy
  ProgramOrder order;
  const auto use_of = [&](int index) -> LastUse& {
    const Buffer& buffer = program.buffers(index);
    return uses[{buffer.slot(),
                 CopyAt(buffer, role.slots(buffer.slot()), /*step=*/0)}];
  };
  for (int i = 0; i < program.instructions_size(); ++i) {
    Instruction& instruction = *program.mutable_instructions(i);
    std::vector<int> after;
    for (const Instruction::Operand& operand : instruction.operands()) {
      const LastUse& use = use_of(operand.buffer());
      if (use.writer >= 0) after.push_back(use.writer);
      if (!Writes(operand)) continue;
      after.insert(after.end(), use.readers.begin(), use.readers.end());
    }
    for (const int earlier : order.Append(instruction.lane(), after)) {
      instruction.add_after(earlier);
    }
    for (const Instruction::Operand& operand : instruction.operands()) {
      if (!Writes(operand)) use_of(operand.buffer()).readers.push_back(i);
    }
    for (const Instruction::Operand& operand : instruction.operands()) {
      if (Writes(operand)) use_of(operand.buffer()) = {i, {}};
    }
  }
}

}  // namespace

void DeriveAfter(Draft& draft) {
  for (Role& role : *draft.plan.mutable_roles()) {
    for (Program& program : *role.mutable_programs()) Derive(role, program);
  }
}

}  // namespace troupe
