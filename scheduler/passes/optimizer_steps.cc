#include "scheduler/passes/optimizer_steps.h"

#include "proto/plan/program_text.h"

namespace troupe {

void OptimizerSteps(Draft& draft) {
  if (draft.plan.job().optimizer().name() == "none") return;
  for (RankPlan& rank : *draft.plan.mutable_ranks()) {
    for (const int u : UnitsOf(draft.plan, rank.rank())) {
      if (draft.plan.units(u).flat_elements() == 0) continue;
      Instruction& step =
          *FindProgram(rank, Program::TRAIN)->add_instructions();
      step.set_kind(Instruction::STEP);
      step.set_lane(UsualLane(Instruction::STEP));
      step.set_unit(u);
    }
  }
}

}  // namespace troupe
