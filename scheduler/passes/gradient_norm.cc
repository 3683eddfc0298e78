#include "scheduler/passes/gradient_norm.h"

#include "proto/plan/optimizer_rows.h"
#include "proto/plan/part_state.h"
#include "scheduler/passes/lanes.h"

namespace troupe {

void GradientNorm(Draft& draft) {
  if (!ChangesParameters(draft.plan.job().optimizer()) ||
      draft.plan.derived().takes_turns()) {
    return;
  }
  for (Role& role : *draft.plan.mutable_roles()) {
    Program& train = *FindProgram(role, Program::TRAIN);
    // As their gradients come.
    for (int i = role.placements_size(); i-- > 0;) {
      const Placement& placement = role.placements(i);
      // Where they are stored.
      const bool on_host = TierOfFlat(draft.plan.units(placement.unit()),
                                      Buffer::PARAMETER_GRADIENTS) != DEVICE;
      const int lane =
          on_host ? LaneNamed("OPTIMIZER") : LaneFor(Instruction::GRAD_NORM);
      DealParts(draft.plan, placement,
                {.kind = Instruction::GRAD_NORM, .lane = lane}, train);
    }
  }
}

}  // namespace troupe
