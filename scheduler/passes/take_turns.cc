#include "scheduler/passes/take_turns.h"

#include <utility>

#include "proto/plan/roles.h"
#include "proto/plan/served.h"
#include "scheduler/passes/lanes.h"

namespace troupe {
namespace {

// All units of a role are of the same replicas and servers.
Instruction OfTurn(Instruction::Kind kind, const Role& role) {
  Instruction turn;
  turn.set_kind(kind);
  turn.set_lane(LaneFor(kind));
  turn.set_group(role.placements(0).served().group());
  return turn;
}

}  // namespace

void TakeTurns(Draft& draft) {
  const Plan& plan = draft.plan;
  if (!plan.derived().takes_turns()) return;
  for (Role& role : *draft.plan.mutable_roles()) {
    Program& train = *FindProgram(role, Program::TRAIN);
    if (IsServer(plan, FirstRankOf(plan.mesh(), role))) {
      *train.add_instructions() = OfTurn(Instruction::ADMIT, role);
      continue;
    }
    Program turn;
    turn.set_kind(Program::TRAIN);
    *turn.add_instructions() = OfTurn(Instruction::CLAIM, role);
    turn.MergeFrom(train);
    *turn.add_instructions() = OfTurn(Instruction::DELIVER, role);
    train = std::move(turn);
  }
}

}  // namespace troupe
