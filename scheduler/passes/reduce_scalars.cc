#include "scheduler/passes/reduce_scalars.h"

#include "proto/plan/program_text.h"

namespace troupe {

namespace {

Instruction Reduction(int group, int lag) {
  Instruction reduce;
  reduce.set_kind(Instruction::REDUCE_SCALARS);
  reduce.set_lane(UsualLane(Instruction::REDUCE_SCALARS));
  reduce.set_group(group);
  reduce.set_ahead(-lag);
  return reduce;
}

void AddLate(const Instruction& reduce, RankPlan& rank) {
  Program& train = *FindProgram(rank, Program::TRAIN);
  Program begun;
  begun.set_kind(Program::TRAIN);
  *begun.add_instructions() = reduce;
  begun.MergeFrom(train);
  train = begun;
  Program& report = *rank.add_programs();
  report.set_kind(Program::REPORT);
  *report.add_instructions() = reduce;
}

}  // namespace

void ReduceScalars(Draft& draft) {
  if (draft.plan.ranks_size() == 1) return;
  const int group = WorldGroup(draft.plan);
  const int lag = draft.plan.derived().report_lag();
  for (RankPlan& rank : *draft.plan.mutable_ranks()) {
    for (Program& program : *rank.mutable_programs()) {
      const bool sums = program.kind() == Program::VALIDATE ||
                        (program.kind() == Program::TRAIN && lag == 0);
      if (sums) *program.add_instructions() = Reduction(group, 0);
    }
    if (lag > 0) AddLate(Reduction(group, lag), rank);
  }
}

}  // namespace troupe
