#include "scheduler/passes/draft.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/check.h"
#include "proto/plan/at_rest.h"
#include "proto/plan/groups.h"
#include "proto/plan/islands.h"
#include "proto/plan/mesh.h"
#include "scheduler/passes/lanes.h"

namespace troupe {
namespace {

int FindGroup(const Plan& plan, absl::string_view name) {
  for (int g = 0; g < plan.groups_size(); ++g) {
    if (plan.groups(g).name() == name) return g;
  }
  CHECK(false) << "no group " << name;
  return -1;
}

int FirstOfAll(const Plan& plan) {
  for (int g = 0; g < plan.groups_size(); ++g) {
    const Group& group = plan.groups(g);
    if (GroupSize(plan.mesh(), group) == MeshSize(plan.mesh())) return g;
  }
  return -1;
}

}  // namespace

bool HasWorldGroup(const Plan& plan) { return FirstOfAll(plan) >= 0; }

int WorldGroup(const Plan& plan) {
  const int group = FirstOfAll(plan);
  CHECK_GE(group, 0) << "no group has all ranks";
  return group;
}

int IslandGroup(const Plan& plan) {
  const int ranks = RanksOfIsland(plan.mesh());
  for (int g = 0; g < plan.groups_size(); ++g) {
    const Group& group = plan.groups(g);
    if (GroupSize(plan.mesh(), group) == ranks &&
        !Spans(plan.mesh(), group, kIslandAxis)) {
      return g;
    }
  }
  return -1;
}

int IslandsGroup(const Plan& plan) { return FindGroup(plan, kIslandsGroup); }

std::string TransferGroupName(bool gradient) {
  return gradient ? "gradients" : "activations";
}

int TransferGroup(const Plan& plan, bool gradient) {
  return FindGroup(plan, TransferGroupName(gradient));
}

std::string ExchangeGroupName(const Op::Exchange& exchange) {
  return absl::StrCat(absl::StrJoin(exchange.axes(), "-"), "-exchanges");
}

int ExchangeGroup(const Plan& plan, const Op::Exchange& exchange) {
  return FindGroup(plan, ExchangeGroupName(exchange));
}

int GatherGroup(const Plan& plan, int dealt) {
  return FindGroup(plan, GatherGroupName(plan.groups(dealt)));
}

std::string GatherGroupName(const Group& dealt) {
  return absl::StrCat(SpansText(dealt), "-parameters");
}

std::vector<int> GradientUnits(const Plan& plan, int unit) {
  std::vector<int> units = {unit};
  for (const Unit::Tied& tied : plan.units(unit).tied()) {
    units.push_back(tied.unit());
  }
  std::sort(units.begin(), units.end());
  return units;
}

std::vector<int> AddsToGradientsOf(const Plan& plan, const UnitPasses& passes,
                                   int unit) {
  bool own = false;
  bool tied = false;
  for (const UnitPasses::Pass& pass :
       passes.Of(unit, Instruction::BACKWARD_WEIGHT)) {
    own |= pass.use.weight_gradients;
    tied |= pass.use.tied_gradients;
  }
  std::vector<int> units;
  for (const int u : GradientUnits(plan, unit)) {
    if (u == unit ? own : tied) units.push_back(u);
  }
  return units;
}

void DealParts(const Plan& plan, const Placement& placement, const Dealt& dealt,
               Program& program) {
  if (KeepsNoState(placement)) return;
  const Unit& unit = plan.units(placement.unit());
  for (int p = 0; p < placement.parts_size(); ++p) {
    const Unit::Part& part = unit.parts(p);
    if (part.elements() == 0 || (part.frozen() && !dealt.frozen)) continue;
    Instruction& instruction = *program.add_instructions();
    instruction.set_kind(dealt.kind);
    instruction.set_lane(dealt.lane);
    instruction.set_unit(placement.unit());
    instruction.set_part(p);
    if (!placement.parts(p).has_shared()) continue;
    instruction.set_group(placement.parts(p).shared());
  }
}

}  // namespace troupe
