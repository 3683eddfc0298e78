#include "scheduler/passes/gradient_norm.h"

namespace troupe {

void GradientNorm(Draft& draft) {
  if (draft.plan.job().optimizer().name() == "none") return;
  for (Role& role : *draft.plan.mutable_roles()) {
    Program& train = *FindProgram(role, Program::TRAIN);
    // As their gradients come.
    for (int i = role.placements_size(); i-- > 0;) {
      DealParts(draft.plan, role.placements(i), Instruction::GRAD_NORM, train);
    }
  }
}

}  // namespace troupe
