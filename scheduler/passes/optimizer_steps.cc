#include "scheduler/passes/optimizer_steps.h"

#include "scheduler/passes/lanes.h"

namespace troupe {

void OptimizerSteps(Draft& draft) {
  if (draft.plan.job().optimizer().name() == "none") return;
  for (Role& role : *draft.plan.mutable_roles()) {
    for (const Placement& placement : role.placements()) {
      if (draft.plan.units(placement.unit()).flat_elements() == 0) continue;
      Instruction& step =
          *FindProgram(role, Program::TRAIN)->add_instructions();
      step.set_kind(Instruction::STEP);
      step.set_lane(LaneFor(Instruction::STEP));
      step.set_unit(placement.unit());
    }
  }
}

}  // namespace troupe
