#include "scheduler/passes/add_checkpoint.h"

#include "proto/plan/program_text.h"

namespace troupe {

void AddCheckpoint(Draft& draft) {
  if (draft.plan.job().checkpoint().directory().empty()) return;
  const std::vector<std::vector<int>> spread = SpreadUnits(draft.plan);
  for (RankPlan& rank : *draft.plan.mutable_ranks()) {
    Program& program = *rank.add_programs();
    program.set_kind(Program::CHECKPOINT);
    for (const int u : spread[rank.rank()]) {
      Instruction& snapshot = *program.add_instructions();
      snapshot.set_kind(Instruction::SNAPSHOT);
      snapshot.set_lane(UsualLane(Instruction::SNAPSHOT));
      snapshot.set_unit(u);
    }
  }
}

}  // namespace troupe
