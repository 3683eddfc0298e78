#include "scheduler/passes/gather_parameters.h"

#include <set>
#include <utility>

#include "proto/plan/at_rest.h"
#include "proto/plan/mesh.h"
#include "proto/plan/roles.h"
#include "proto/plan/served.h"
#include "proto/plan/unit_passes.h"
#include "scheduler/layouts/zero.h"
#include "scheduler/passes/lanes.h"

namespace troupe {
namespace {

// Whether its ranks have slices of a unit's parameters, or servers have them.
bool IsGathered(const Plan& plan, const Placement& placement) {
  return placement.has_served() ||
         !FirstDealtParts(plan, placement, DealtParts::kAll).empty();
}

// Dealt units whose parameters a pass computes with: its own unit's, and those
// that this is tied to. `all_at_once`: where a unit is cut into segments, all
// of them are there in each that uses some.
std::set<int> UnitsUsed(const UnitPasses& passes, const Role& role,
                        const Instruction& pass, bool all_at_once,
                        const Plan& plan) {
  std::set<int> used;
  if (pass.kind() != Instruction::FORWARD &&
      pass.kind() != Instruction::RECOMPUTE &&
      pass.kind() != Instruction::BACKWARD_INPUT) {
    return used;
  }
  const SegmentUse& use =
      passes.Of(pass.unit(), pass.kind()).at(pass.segment()).use;
  for (const int u : GradientUnits(plan, pass.unit())) {
    const bool reads = all_at_once        ? use.weights || use.tied_weights
                       : u == pass.unit() ? use.weights
                                          : use.tied_weights;
    if (reads && IsGathered(plan, *FindPlacement(role, u))) used.insert(u);
  }
  return used;
}

Instruction& AddGather(const Placement& placement, Instruction::Kind kind,
                       Program& program) {
  Instruction& gather = *program.add_instructions();
  gather.set_kind(kind);
  gather.set_lane(LaneFor(kind));
  gather.set_unit(placement.unit());
  return gather;
}

// One for all that is dealt over the same ranks; where servers keep the unit,
// one for all of it.
void EmitGathers(const Plan& plan, const Placement& placement,
                 Program& program) {
  if (placement.has_served()) {
    AddGather(placement, Instruction::PULL, program)
        .set_group(GatherGroup(plan, placement.served().group()));
    return;
  }
  for (const int part : FirstDealtParts(plan, placement, DealtParts::kAll)) {
    Instruction& gather =
        AddGather(placement, Instruction::GATHER_PARAMETERS, program);
    gather.set_part(part);
    gather.set_group(GatherGroup(plan, placement.parts(part).dealt()));
  }
}

// Whether one replica pulls at a time (take_turns.h).
bool PullsByTurns(const Plan& plan, const Program& program) {
  return program.kind() == Program::TRAIN && plan.derived().takes_turns();
}

// What replicas at the same place of the pipeline pull, in their order.
void PullAsReplicas(const Plan& plan, int index, Role& servers) {
  const int places = AxisSize(plan.mesh(), kPipelineAxis);
  for (Program& program : *servers.mutable_programs()) {
    if (PullsByTurns(plan, program)) continue;
    const Role& replicas = plan.roles(index % places);
    for (const Instruction& pull :
         FindProgram(replicas, program.kind())->instructions()) {
      if (pull.kind() != Instruction::PULL) continue;
      EmitGathers(plan, *FindPlacement(servers, pull.unit()), program);
    }
  }
}

}  // namespace

void GatherParameters(Draft& draft) {
  const Plan& plan = draft.plan;
  const ZeroRow row = ZeroRowOf(plan.job().parallelism());
  if (!row.states && !HasServers(plan)) return;
  const UnitPasses passes(plan);
  for (int r = 0; r < plan.roles_size(); ++r) {
    Role& role = *draft.plan.mutable_roles(r);
    if (IsServer(plan, FirstRankOf(plan.mesh(), role))) {
      PullAsReplicas(plan, r, role);
      continue;
    }
    for (Program& program : *role.mutable_programs()) {
      if (PullsByTurns(plan, program)) continue;
      Program gathered;
      gathered.set_kind(program.kind());
      // A text is written with the weights of a unit where VALIDATE has them.
      const bool decodes =
          program.kind() == Program::VALIDATE && plan.has_decoding();
      std::set<int> whole;
      for (const Instruction& instruction : program.instructions()) {
        const std::set<int> used =
            UnitsUsed(passes, role, instruction, decodes, plan);
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
