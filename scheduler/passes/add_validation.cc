#include "scheduler/passes/add_validation.h"

#include "proto/plan/program_text.h"

namespace troupe {

void AddValidation(Draft& draft) {
  if (draft.plan.job().training().validate_every() == 0) return;
  for (RankPlan& rank : *draft.plan.mutable_ranks()) {
    Program& program = *rank.add_programs();
    program.set_kind(Program::VALIDATE);
    const std::vector<int> units = UnitsOf(draft.plan, rank.rank());
    const int micro_batches = draft.plan.derived().validation_micro_batches();
    for (int m = 0; m < micro_batches; ++m) {
      for (const int u : units) {
        Instruction& instruction = *program.add_instructions();
        instruction.set_kind(Instruction::FORWARD);
        instruction.set_lane(UsualLane(Instruction::FORWARD));
        instruction.set_unit(u);
        instruction.set_micro_batch(m);
      }
    }
  }
}

}  // namespace troupe
