#include "scheduler/passes/derive_after.h"

#include <map>
#include <utility>
#include <vector>

#include "proto/plan/buffer_kind.h"
#include "proto/plan/byte_map.h"
#include "proto/plan/operand.h"
#include "proto/plan/program_order.h"

namespace troupe {
namespace {

// Instructions that used a byte: the last to write it, and those that have read
// it since, of each lane the last.
struct UsesInOrder {
  int writer = -1;
  std::vector<int> readers;
};

void Derive(const Role& role, int lanes, Program& program) {
  std::map<std::pair<int, int>, ByteMap<UsesInOrder>>
      memory;  // by slot and copy
  ProgramOrder order(lanes);
  const auto uses_of = [&](const Buffer& buffer) -> ByteMap<UsesInOrder>& {
    return memory[{buffer.slot(),
                   CopyAt(buffer, role.slots(buffer.slot()), /*step=*/0)}];
  };
  for (int i = 0; i < program.instructions_size(); ++i) {
    Instruction& instruction = *program.mutable_instructions(i);
    std::vector<int> after;
    for (const Instruction::Operand& operand : instruction.operands()) {
      const Buffer& buffer = program.buffers(operand.buffer());
      for (const auto& [begin, piece] :
           uses_of(buffer).At(PlaceOf(operand, buffer))) {
        const UsesInOrder& uses = piece.value;
        if (uses.writer >= 0) after.push_back(uses.writer);
        if (!Writes(operand)) continue;
        after.insert(after.end(), uses.readers.begin(), uses.readers.end());
      }
    }
    for (const int earlier : order.Append(instruction.lane(), after)) {
      instruction.add_after(earlier);
    }
    for (const Instruction::Operand& operand : instruction.operands()) {
      const Buffer& buffer = program.buffers(operand.buffer());
      const BytesUsed bytes = PlaceOf(operand, buffer);
      if (Writes(operand)) {
        // An instruction that waits for this one has waited for those before.
        UsesInOrder& uses = uses_of(buffer).Join(bytes);
        uses.writer = i;
        uses.readers.clear();
        continue;
      }
      for (auto& [begin, piece] : uses_of(buffer).At(bytes)) {
        AddLaterOfLane(program, i, piece.value.readers);
      }
    }
  }
}

}  // namespace

void DeriveAfter(Draft& draft) {
  for (Role& role : *draft.plan.mutable_roles()) {
    for (Program& program : *role.mutable_programs()) {
      Derive(role, draft.plan.lanes_size(), program);
    }
  }
}

}  // namespace troupe
