#include "scheduler/passes/reduce_scalars.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "proto/plan/mesh.h"
#include "proto/plan/program_text.h"
#include "scheduler/passes/dry_run.h"

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

bool SumsGradientsAlongThePipeline(const Plan& plan) {
  for (const Placement& placement : plan.placements()) {
    for (const int index : placement.groups()) {
      const Group& group = plan.groups(index);
      const int first = CoordinateOn(plan.mesh(), "pipeline", group.ranks(0));
      for (const int rank : group.ranks()) {
        if (CoordinateOn(plan.mesh(), "pipeline", rank) != first) return true;
      }
    }
  }
  return false;
}

// By pipeline rank, in steps.
std::vector<int> Lags(const Draft& draft) {
  if (SumsGradientsAlongThePipeline(draft.plan)) {
    return std::vector<int>(draft.compute_order.size(), 1);
  }
  const int runs = RunsUntilSteady(draft);
  const auto before = DryRun(draft, draft.compute_order, runs - 1);
  const auto times = DryRun(draft, draft.compute_order, runs);
  double last = 0;
  for (const auto& of_rank : times) {
    last = std::max(last, of_rank.front().start);
  }
  std::vector<int> lags;
  for (size_t rank = 0; rank < times.size(); ++rank) {
    const double start = times[rank].front().start;
    const double period = start - before[rank].front().start;
    lags.push_back(1 + static_cast<int>(std::lround((last - start) / period)));
  }
  return lags;
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
  std::vector<int> lags(draft.compute_order.size(), 0);
  if (draft.plan.derived().report_lag() > 0) {
    lags = Lags(draft);
    draft.plan.mutable_derived()->set_report_lag(
        *std::max_element(lags.begin(), lags.end()));
  }
  for (RankPlan& rank : *draft.plan.mutable_ranks()) {
    const int lag =
        lags[CoordinateOn(draft.plan.mesh(), "pipeline", rank.rank())];
    for (Program& program : *rank.mutable_programs()) {
      const bool sums = program.kind() == Program::VALIDATE ||
                        (program.kind() == Program::TRAIN && lag == 0);
      if (sums) *program.add_instructions() = Reduction(group, 0);
    }
    if (lag > 0) AddLate(Reduction(group, lag), rank);
  }
}

}  // namespace troupe
