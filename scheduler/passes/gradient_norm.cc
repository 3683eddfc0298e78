#include "scheduler/passes/gradient_norm.h"

#include "proto/plan/program_text.h"

namespace troupe {

void GradientNorm(Draft& draft) {
  if (draft.plan.job().optimizer().name() == "none") return;
  const std::vector<std::vector<Duty>> spread = SpreadUnits(draft.plan);
  for (RankPlan& rank : *draft.plan.mutable_ranks()) {
    const std::vector<Duty>& duties = spread[rank.rank()];
    for (auto duty = duties.rbegin(); duty != duties.rend(); ++duty) {
      Instruction& norm =
          *FindProgram(rank, Program::TRAIN)->add_instructions();
      norm.set_kind(Instruction::GRAD_NORM);
      norm.set_lane(UsualLane(Instruction::GRAD_NORM));
      norm.set_unit(duty->unit);
      norm.set_part(duty->part);
    }
  }
}

}  // namespace troupe
