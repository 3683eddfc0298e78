#include "scheduler/passes/add_checkpoint.h"

#include "proto/plan/program_text.h"

namespace troupe {

void AddCheckpoint(Draft& draft) {
  if (draft.plan.job().checkpoint().directory().empty()) return;
  const std::vector<std::vector<Duty>> spread = SpreadUnits(draft.plan);
  for (RankPlan& rank : *draft.plan.mutable_ranks()) {
    Program& program = *rank.add_programs();
    program.set_kind(Program::CHECKPOINT);
    for (const Duty& duty : spread[rank.rank()]) {
      Instruction& snapshot = *program.add_instructions();
      snapshot.set_kind(Instruction::SNAPSHOT);
      snapshot.set_lane(UsualLane(Instruction::SNAPSHOT));
      snapshot.set_unit(duty.unit);
      snapshot.set_part(duty.part);
    }
  }
}

}  // namespace troupe
