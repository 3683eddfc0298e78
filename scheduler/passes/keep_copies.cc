#include "scheduler/passes/keep_copies.h"

#include "absl/strings/str_cat.h"
#include "proto/plan/copies.h"
#include "proto/plan/copy_losses.h"
#include "scheduler/passes/lanes.h"

namespace troupe {

void KeepCopies(Draft& draft) {
  Plan& plan = draft.plan;
  if (!KeepsCopies(plan.job(), plan.mesh())) return;
  Group& group = *plan.mutable_groups(CopiesGroup(plan));
  if (WantsOpposite(plan, draft.hosts)) group.set_name(kOppositeCopiesGroup);
  const bool mirrors = WantsMirrors(plan, draft.hosts);
  group.set_purpose(
      absl::StrCat("go on after ", LossesOutlived(plan, draft.hosts, mirrors)));
  for (Role& role : *plan.mutable_roles()) {
    Program& program = *role.add_programs();
    program.set_kind(Program::KEEP);
    for (const Placement& placement : role.placements()) {
      Instruction& keep = *program.add_instructions();
      keep.set_kind(Instruction::KEEP);
      keep.set_lane(LaneFor(Instruction::KEEP));
      keep.set_unit(placement.unit());
    }
    if (!mirrors) continue;
    Instruction& mirror = *program.add_instructions();
    mirror.set_kind(Instruction::MIRROR);
    mirror.set_lane(LaneFor(Instruction::MIRROR));
    mirror.set_group(CopiesGroup(plan));
  }
}

}  // namespace troupe
