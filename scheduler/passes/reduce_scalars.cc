#include "scheduler/passes/reduce_scalars.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "proto/plan/groups.h"
#include "proto/plan/islands.h"
#include "proto/plan/mesh.h"
#include "scheduler/passes/dry_run.h"
#include "scheduler/passes/lanes.h"

namespace troupe {

namespace {

Instruction Reduction(int group, int lag) {
  Instruction reduce;
  reduce.set_kind(Instruction::REDUCE_SCALARS);
  reduce.set_lane(LaneFor(Instruction::REDUCE_SCALARS));
  reduce.set_group(group);
  reduce.set_ahead(-lag);
  return reduce;
}

bool SumsGradientsAlongThePipeline(const Plan& plan) {
  for (const Role& role : plan.roles()) {
    for (const Placement& placement : role.placements()) {
      for (const Placement::Part& part : placement.parts()) {
        if (!part.has_summed()) continue;
        const Group& group = plan.groups(part.summed());
        if (Spans(plan.mesh(), group, "pipeline")) return true;
      }
    }
  }
  return false;
}

// By pipeline rank, in steps. All replicas are of one kind.
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

void AddLate(const Instruction& reduce, Role& role) {
  Program& train = *FindProgram(role, Program::TRAIN);
  Program begun;
  begun.set_kind(Program::TRAIN);
  *begun.add_instructions() = reduce;
  begun.MergeFrom(train);
  train = begun;
  Program& report = *role.add_programs();
  report.set_kind(Program::REPORT);
  *report.add_instructions() = reduce;
}

// An island sums by itself what it has trained on; now and then all agree
// whether to stop.
void SumOverIslands(const Plan& plan, Program& train) {
  if (const int island = IslandGroup(plan); island >= 0) {
    *train.add_instructions() = Reduction(island, 0);
  }
  Instruction& agree = *train.add_instructions();
  agree = Reduction(WorldGroup(plan), 0);
  *agree.mutable_when() = WhenAgreed(plan.job().islands());
}

}  // namespace

void ReduceScalars(Draft& draft) {
  if (MeshSize(draft.plan.mesh()) == 1) return;
  const int group = WorldGroup(draft.plan);
  std::vector<int> lags(draft.compute_order.size(), 0);
  if (draft.plan.derived().report_lag() > 0) {
    lags = Lags(draft);
    draft.plan.mutable_derived()->set_report_lag(
        *std::max_element(lags.begin(), lags.end()));
  }
  for (int r = 0; r < draft.plan.roles_size(); ++r) {
    Role& role = *draft.plan.mutable_roles(r);
    const int lag = lags[r % lags.size()];
    for (Program& program : *role.mutable_programs()) {
      if (HasIslands(draft.plan) && program.kind() == Program::TRAIN) {
        SumOverIslands(draft.plan, program);
        continue;
      }
      const bool sums = program.kind() == Program::VALIDATE ||
                        (program.kind() == Program::TRAIN && lag == 0 &&
                         !draft.plan.derived().takes_turns());
      if (sums) *program.add_instructions() = Reduction(group, 0);
    }
    if (lag > 0) AddLate(Reduction(group, lag), role);
  }
}

}  // namespace troupe
