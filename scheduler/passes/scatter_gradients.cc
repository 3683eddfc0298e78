#include "scheduler/passes/scatter_gradients.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "proto/plan/at_rest.h"
#include "proto/plan/roles.h"
#include "proto/plan/trained.h"
#include "scheduler/layouts/zero.h"
#include "scheduler/passes/lanes.h"

namespace troupe {
namespace {

constexpr int kAll = -1;  // micro-batches

// What is scattered at once: a unit, and a micro-batch or kAll.
using Gradients = std::pair<int, int>;

Instruction& AddScatter(const Gradients& gradients, Instruction::Kind kind,
                        Program& program) {
  Instruction& scatter = *program.add_instructions();
  scatter.set_kind(kind);
  scatter.set_lane(LaneFor(kind));
  scatter.set_unit(gradients.first);
  if (gradients.second != kAll) scatter.set_micro_batch(gradients.second);
  return scatter;
}

// One for all that is dealt over the same ranks, or one to the unit's servers.
void Emit(const Plan& plan, const Gradients& gradients,
          const Placement& placement, Program& program) {
  if (placement.has_served()) {
    if (TrainedElements(plan.units(gradients.first)) == 0) return;
    AddScatter(gradients, Instruction::PUSH, program)
        .set_group(placement.served().group());
    return;
  }
  for (const int part :
       FirstDealtParts(plan, placement, DealtParts::kTrained)) {
    Instruction& scatter =
        AddScatter(gradients, Instruction::SCATTER_GRADS, program);
    scatter.set_part(part);
    scatter.set_group(placement.parts(part).dealt());
  }
}

// By the instruction behind which they are scattered.
using Scatters = std::multimap<int, Gradients>;

// In the order of another role, with whose ranks this one's meet: replicas that
// run another number of micro-batches may come to be done with their units in
// another order, or have nothing to add to some. Servers have nothing to add to
// any: theirs stand behind all else of the program.
Scatters InOrderOf(const Scatters& other, const std::map<Gradients, int>& last,
                   const Program& program) {
  Scatters scatters;
  int index = last.empty() ? std::max(0, program.instructions_size() - 1) : 0;
  for (const auto& [theirs, gradients] : other) {
    const auto own = last.find(gradients);
    if (own != last.end()) index = std::max(index, own->second);
    scatters.emplace(index, gradients);
  }
  return scatters;
}

}  // namespace

void ScatterGradients(Draft& draft) {
  const Plan& plan = draft.plan;
  if (plan.derived().takes_turns()) return;  // take_turns.h
  const size_t places = draft.compute_order.size();
  std::vector<Scatters> of_roles;
  const UnitPasses passes(plan);
  const bool each = ZeroRowOf(plan.job().parallelism()).gradients;
  for (Role& role : *draft.plan.mutable_roles()) {
    Program& train = *FindProgram(role, Program::TRAIN);
    // By instruction, those to which it is the last to add.
    std::map<Gradients, int> last;
    for (int i = 0; i < train.instructions_size(); ++i) {
      const Instruction& adds = train.instructions(i);
      if (adds.kind() != Instruction::BACKWARD_WEIGHT) continue;
      for (const int u : AddsToGradientsOf(plan, passes, adds.unit())) {
        last[{u, each ? adds.micro_batch() : kAll}] = i;
      }
    }
    Scatters behind;
    for (const auto& [gradients, index] : last) {
      behind.emplace(index, gradients);
    }
    const size_t place = of_roles.size() % places;
    // Those of a micro-batch are scattered within a replica.
    const bool meets = of_roles.size() >= places && !each;
    if (meets) behind = InOrderOf(of_roles[place], last, train);
    of_roles.push_back(behind);
    Program scattered;
    scattered.set_kind(Program::TRAIN);
    const auto emit_behind = [&](int i) {
      const auto [begin, end] = behind.equal_range(i);
      for (auto at = begin; at != end; ++at) {
        const Gradients& gradients = at->second;
        Emit(plan, gradients, *FindPlacement(role, gradients.first), scattered);
      }
    };
    for (int i = 0; i < train.instructions_size(); ++i) {
      *scattered.add_instructions() = train.instructions(i);
      emit_behind(i);
    }
    if (train.instructions().empty()) emit_behind(0);
    train = std::move(scattered);
  }
}

}  // namespace troupe
