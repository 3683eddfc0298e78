// What exchanges between islands cost, and how much of that falls on a step.
#include "proto/plan/at_rest.h"
#include "proto/plan/optimizer_states.h"
#include "proto/plan/outer_change.h"
#include "proto/plan/roles.h"
#include "scheduler/simulate/cost_model.h"

namespace troupe {
namespace {

constexpr double kBytesOfWeight = 4;

Cost PartOf(Cost cost, double share) {
  for (double* const seconds :
       {&cost.matmul, &cost.attention, &cost.elementwise, &cost.optimizer,
        &cost.communication, &cost.moving, &cost.waiting, &cost.overhead,
        &cost.on_wire}) {
    *seconds *= share;
  }
  for (double& link : cost.on_links) link *= share;
  for (double& bytes : cost.bytes) bytes *= share;
  return cost;
}

}  // namespace

Cost CostModel::Counted(const Cost& cost,
                        const Instruction& instruction) const {
  if (!instruction.has_when()) return cost;
  // That of the last step is of no step in the middle.
  if (instruction.when().every() == 0 || rare_ == Rare::kNone) return {};
  if (rare_ == Rare::kOne) {
    return instruction.when().offset() == offset_ ? cost : Cost();
  }
  return PartOf(cost, 1.0 / static_cast<double>(instruction.when().every()));
}

Cost CostModel::OuterCost(int rank, const Instruction& instruction) const {
  if (instruction.kind() == Instruction::OUTER_REDUCE) {
    return CollectiveCost(rank, instruction);
  }
  const Machine& machine = At(rank);
  const Placement& placement =
      *FindPlacement(RoleOf(plan_, rank), instruction.unit());
  const auto elements =
      static_cast<double>(LargestTrainedAtRest(plan_, placement, rank));
  // The change is written and made of two that are read. A step reads it, and
  // changes its states and the weights.
  const double touched = instruction.kind() == Instruction::OUTER_GRADIENT
                             ? 3
                             : 3 + 2 * OuterStates(plan_.job().optimizer());
  Cost cost;
  cost.optimizer =
      touched * kBytesOfWeight * elements /
      (machine.calibration.optimizer_bytes_per_second() * machine.scale);
  return cost;
}

}  // namespace troupe
