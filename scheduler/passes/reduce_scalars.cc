#include "scheduler/passes/reduce_scalars.h"

#include "proto/plan/program_text.h"

namespace troupe {

void ReduceScalars(Draft& draft) {
  if (draft.plan.ranks_size() == 1) return;
  const int group = WorldGroup(draft.plan);
  for (RankPlan& rank : *draft.plan.mutable_ranks()) {
    for (Program& program : *rank.mutable_programs()) {
      Instruction& reduce = *program.add_instructions();
      reduce.set_kind(Instruction::REDUCE_SCALARS);
      reduce.set_lane(UsualLane(Instruction::REDUCE_SCALARS));
      reduce.set_group(group);
    }
  }
}

}  // namespace troupe
