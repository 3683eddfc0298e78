#include "scheduler/passes/add_checkpoint.h"

#include "scheduler/passes/lanes.h"

namespace troupe {

void AddCheckpoint(Draft& draft) {
  if (draft.plan.job().checkpoint().directory().empty()) return;
  for (Role& role : *draft.plan.mutable_roles()) {
    Program& program = *role.add_programs();
    program.set_kind(Program::CHECKPOINT);
    for (const Placement& placement : role.placements()) {
      DealParts(draft.plan, placement,
                {.kind = Instruction::SNAPSHOT,
                 .lane = LaneFor(Instruction::SNAPSHOT),
                 .frozen = true},
                program);
    }
  }
}

}  // namespace troupe
