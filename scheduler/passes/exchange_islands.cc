#include "scheduler/passes/exchange_islands.h"

#include <utility>
#include <vector>

#include "proto/plan/islands.h"
#include "proto/plan/trained.h"
#include "scheduler/passes/lanes.h"

namespace troupe {
namespace {

// Where training waits, units whose change is in memory at a time.
constexpr int kAhead = 2;

class Exchange {
 public:
  Exchange(const Plan& plan, const Role& role) : plan_(plan), role_(role) {}

  // In steps of its own for each fragment.
  void InTurns(Program& program) const {
    for (int f = 0; f < islands().fragments(); ++f) {
      InOne(UnitsOf(f), WhenExchanged(islands(), f), program);
    }
  }

  // All units after the last step.
  void AtTheEnd(Program& program) const {
    InOne(UnitsOf(kAll), WhenEnded(), program);
  }

  // Hidden behind a step: what comes before all of it, and behind it.
  void Begin(Program& program) const {
    for (int f = 0; f < islands().fragments(); ++f) {
      for (const int unit : UnitsOf(f)) {
        const Instruction::When when = WhenExchanged(islands(), f);
        Add(Instruction::OUTER_GRADIENT, unit, when, program);
        Add(Instruction::OUTER_REDUCE, unit, when, program);
      }
    }
  }
  void End(Program& program) const {
    for (int f = 0; f < islands().fragments(); ++f) {
      for (const int unit : UnitsOf(f)) {
        Add(Instruction::OUTER_STEP, unit, WhenExchanged(islands(), f),
            program);
      }
    }
  }

 private:
  static constexpr int kAll = -1;

  const IslandsSpec& islands() const { return plan_.job().islands(); }

  std::vector<int> UnitsOf(int fragment) const {
    std::vector<int> units;
    for (const Placement& placement : role_.placements()) {
      const int unit = placement.unit();
      if (fragment != kAll && FragmentOf(islands(), unit) != fragment) continue;
      if (TrainedElements(plan_.units(unit)) > 0) units.push_back(unit);
    }
    return units;
  }

  void InOne(const std::vector<int>& units, const Instruction::When& when,
             Program& program) const {
    const int count = static_cast<int>(units.size());
    for (int i = 0; i < count + kAhead; ++i) {
      if (i < count) {
        Add(Instruction::OUTER_GRADIENT, units[i], when, program);
        Add(Instruction::OUTER_REDUCE, units[i], when, program);
      }
      if (i < kAhead) continue;
      Add(Instruction::OUTER_STEP, units[i - kAhead], when, program);
    }
  }

  void Add(Instruction::Kind kind, int unit, const Instruction::When& when,
           Program& program) const {
    Instruction& instruction = *program.add_instructions();
    instruction.set_kind(kind);
    instruction.set_lane(LaneFor(kind));
    instruction.set_unit(unit);
    if (kind == Instruction::OUTER_REDUCE) {
      instruction.set_group(IslandsGroup(plan_));
    }
    *instruction.mutable_when() = when;
  }

  const Plan& plan_;
  const Role& role_;
};

}  // namespace

void ExchangeIslands(Draft& draft) {
  const Plan& plan = draft.plan;
  if (!HasIslands(plan)) return;
  for (Role& role : *draft.plan.mutable_roles()) {
    Program& train = *FindProgram(role, Program::TRAIN);
    const Exchange exchange(plan, role);
    if (plan.job().islands().overlap() == 0) {
      exchange.InTurns(train);
      continue;
    }
    Program begun;
    begun.set_kind(Program::TRAIN);
    exchange.Begin(begun);
    begun.MergeFrom(train);
    exchange.End(begun);
    exchange.AtTheEnd(begun);
    train = std::move(begun);
  }
}

}  // namespace troupe
