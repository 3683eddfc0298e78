#include "scheduler/passes/gradient_norm.h"

#include "scheduler/passes/lanes.h"
#include "scheduler/tiers/offload.h"

namespace troupe {

void GradientNorm(Draft& draft) {
  if (draft.plan.job().optimizer().name() == "none" ||
      draft.plan.derived().takes_turns()) {
    return;
  }
  // Where they rest.
  const bool on_host =
      RestsIn(draft.plan.job().memory(), Buffer::PARAMETER_GRADIENTS) != DEVICE;
  const int lane =
      on_host ? LaneNamed("OPTIMIZER") : LaneFor(Instruction::GRAD_NORM);
  for (Role& role : *draft.plan.mutable_roles()) {
    Program& train = *FindProgram(role, Program::TRAIN);
    // As their gradients come.
    for (int i = role.placements_size(); i-- > 0;) {
      DealParts(draft.plan, role.placements(i),
                {.kind = Instruction::GRAD_NORM, .lane = lane}, train);
    }
  }
}

}  // namespace troupe
