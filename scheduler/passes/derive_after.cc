#include "scheduler/passes/derive_after.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "proto/plan/buffer_kind.h"
#include "proto/plan/operand.h"
#include "proto/plan/program_order.h"

namespace troupe {
namespace {

// An instruction that used bytes of a slot, which nobody wrote over since.
struct Use {
  BytesUsed bytes;
  int instruction = -1;
};
struct SlotUses {
  std::vector<Use> writes;
  std::vector<Use> reads;
};

void AddOverlapping(const std::vector<Use>& uses, const BytesUsed& bytes,
                    std::vector<int>& instructions) {
  for (const Use& use : uses) {
    if (Overlap(use.bytes, bytes)) instructions.push_back(use.instruction);
  }
}

// Whoever waits for the one that wrote over them has waited for them.
void DropCovered(const BytesUsed& bytes, std::vector<Use>& uses) {
  uses.erase(
      std::remove_if(uses.begin(), uses.end(),
                     [&](const Use& use) { return Covers(bytes, use.bytes); }),
      uses.end());
}

void Derive(const Role& role, int lanes, Program& program) {
  std::map<std::pair<int, int>, SlotUses> slots;  // by slot and copy
  ProgramOrder order(lanes);
  const auto uses_of = [&](const Buffer& buffer) -> SlotUses& {
    return slots[{buffer.slot(),
                  CopyAt(buffer, role.slots(buffer.slot()), /*step=*/0)}];
  };
  for (int i = 0; i < program.instructions_size(); ++i) {
    Instruction& instruction = *program.mutable_instructions(i);
    std::vector<int> after;
    for (const Instruction::Operand& operand : instruction.operands()) {
      const Buffer& buffer = program.buffers(operand.buffer());
      const BytesUsed bytes = BytesOf(operand, buffer);
      const SlotUses& uses = uses_of(buffer);
      AddOverlapping(uses.writes, bytes, after);
      if (Writes(operand)) AddOverlapping(uses.reads, bytes, after);
    }
    for (const int earlier : order.Append(instruction.lane(), after)) {
      instruction.add_after(earlier);
    }
    for (const Instruction::Operand& operand : instruction.operands()) {
      const Buffer& buffer = program.buffers(operand.buffer());
      const BytesUsed bytes = BytesOf(operand, buffer);
      SlotUses& uses = uses_of(buffer);
      if (Writes(operand)) {
        DropCovered(bytes, uses.writes);
        DropCovered(bytes, uses.reads);
        uses.writes.push_back({bytes, i});
      } else {
        uses.reads.push_back({bytes, i});
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
