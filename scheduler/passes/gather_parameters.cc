#include "scheduler/passes/gather_parameters.h"

#include <set>
#include <utility>

#include "proto/plan/at_rest.h"
#include "proto/plan/roles.h"
#include "proto/plan/unit_passes.h"
#include "scheduler/layouts/zero.h"
#include "scheduler/passes/lanes.h"

namespace troupe {
namespace {

// Dealt units whose parameters a pass computes with: its own unit's, and those
// that this is tied to.
std::set<int> UnitsUsed(const UnitPasses& passes, const Role& role,
                        const Instruction& pass, const Plan& plan) {
  std::set<int> used;
  if (pass.kind() != Instruction::FORWARD &&
      pass.kind() != Instruction::RECOMPUTE &&
      pass.kind() != Instruction::BACKWARD_INPUT) {
    return used;
  }
  const SegmentUse& use =
      passes.Of(pass.unit(), pass.kind()).at(pass.segment()).use;
  for (const int u : GradientUnits(plan, pass.unit())) {
    const bool reads = u == pass.unit() ? use.weights : use.tied_weights;
    const Placement& placement = *FindPlacement(role, u);
    const bool gathered =
        !FirstDealtParts(plan, placement, DealtParts::kAll).empty();
    if (reads && gathered) used.insert(u);
  }
  return used;
}

// One for all that is dealt over the same ranks.
void EmitGathers(const Plan& plan, const Placement& placement,
                 Program& program) {
  for (const int part : FirstDealtParts(plan, placement, DealtParts::kAll)) {
    Instruction& gather = *program.add_instructions();
    gather.set_kind(Instruction::GATHER_PARAMETERS);
    gather.set_lane(LaneFor(Instruction::GATHER_PARAMETERS));
    gather.set_unit(placement.unit());
    gather.set_part(part);
    gather.set_group(GatherGroup(plan, placement.parts(part).dealt()));
  }
}

}  // namespace

void GatherParameters(Draft& draft) {
  const Plan& plan = draft.plan;
  const ZeroRow row = ZeroRowOf(plan.job().parallelism());
  if (!row.states) return;
  const UnitPasses passes(plan);
  for (Role& role : *draft.plan.mutable_roles()) {
    for (Program& program : *role.mutable_programs()) {
      Program gathered;
      gathered.set_kind(program.kind());
      std::set<int> whole;
      for (const Instruction& instruction : program.instructions()) {
        const std::set<int> used = UnitsUsed(passes, role, instruction, plan);
        for (const int unit : used) {
          if (whole.count(unit) > 0) continue;
          EmitGathers(plan, *FindPlacement(role, unit), gathered);
        }
        if (row.gathered_for_each_use && !used.empty()) whole.clear();
        whole.insert(used.begin(), used.end());
        *gathered.add_instructions() = instruction;
      }
      program = std::move(gathered);
    }
  }
}

}  // namespace troupe
