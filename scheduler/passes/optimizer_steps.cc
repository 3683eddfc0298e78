#include "scheduler/passes/optimizer_steps.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "proto/plan/at_rest.h"
#include "proto/plan/optimizer_rows.h"
#include "proto/plan/part_state.h"
#include "proto/plan/precision.h"
#include "proto/plan/trained.h"
#include "scheduler/passes/lanes.h"

namespace troupe {
namespace {

Instruction StepOf(int unit, bool on_host) {
  Instruction step;
  step.set_kind(Instruction::STEP);
  step.set_lane(on_host ? LaneNamed("OPTIMIZER") : LaneFor(Instruction::STEP));
  step.set_unit(unit);
  return step;
}

// Units whose parameters or gradients an instruction uses, before any STEP.
std::vector<int> UnitsUsed(const Plan& plan, const Instruction& instruction) {
  switch (instruction.kind()) {
    case Instruction::FORWARD:
    case Instruction::RECOMPUTE:
    case Instruction::BACKWARD_INPUT:
    case Instruction::BACKWARD_WEIGHT:
      return GradientUnits(plan, instruction.unit());
    case Instruction::REDUCE_GRADS:
    case Instruction::SCATTER_GRADS:
    case Instruction::GATHER_PARAMETERS:
    case Instruction::PUSH:
    case Instruction::PULL: {
      std::vector<int> units;
      for (int k = 0; k < std::max(1, instruction.unit_count()); ++k) {
        units.push_back(instruction.unit() + k);
      }
      return units;
    }
    default:
      return {};
  }
}

// Behind all that uses the unit: while others go backward.
void StepAsGradientsCome(const Plan& plan, const std::vector<int>& units,
                         Program& train) {
  if (units.empty()) return;
  std::map<int, int> last;  // instruction, by unit
  for (int i = 0; i < train.instructions_size(); ++i) {
    for (const int u : UnitsUsed(plan, train.instructions(i))) last[u] = i;
  }
  std::multimap<int, int> behind;  // unit, by instruction
  for (const int u : units) behind.emplace(last.at(u), u);
  Program stepped;
  stepped.set_kind(Program::TRAIN);
  for (int i = 0; i < train.instructions_size(); ++i) {
    *stepped.add_instructions() = std::move(*train.mutable_instructions(i));
    const auto [begin, end] = behind.equal_range(i);
    for (auto at = begin; at != end; ++at) {
      *stepped.add_instructions() = StepOf(at->second, /*on_host=*/true);
    }
  }
  train = std::move(stepped);
}

}  // namespace

void OptimizerSteps(Draft& draft) {
  const JobSpec& job = draft.plan.job();
  if (!ChangesParameters(job.optimizer())) return;
  const bool waits = UpdatesNeedNorm(job.training());
  for (Role& role : *draft.plan.mutable_roles()) {
    Program& train = *FindProgram(role, Program::TRAIN);
    std::vector<int> as_gradients_come;
    std::vector<int> at_the_end;
    for (const Placement& placement : role.placements()) {
      const Unit& unit = draft.plan.units(placement.unit());
      if (KeepsNoState(placement) || TrainedElements(unit) == 0) continue;
      const bool at_once = StepsOnHost(unit) && !waits;
      (at_once ? as_gradients_come : at_the_end).push_back(placement.unit());
    }
    StepAsGradientsCome(draft.plan, as_gradients_come, train);
    for (const int u : at_the_end) {
      *train.add_instructions() = StepOf(u, StepsOnHost(draft.plan.units(u)));
    }
  }
}

}  // namespace troupe
