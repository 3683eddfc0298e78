#include "worker/instructions/claim.h"

#include "proto/base/status.h"
#include "worker/instructions/turn_moves.h"

namespace troupe {

absl::Status RunClaim(const Call& call) {
  RankState& state = call.state;
  ASSIGN_OR_RETURN(const TurnLog::Step step,
                   state.turns->Claim(StepOf(call), AskedOf(call)));
  const double flags[] = {step.asked.stop ? 1.0 : 0.0,
                          step.asked.save ? 1.0 : 0.0};
  const OperandBytes totals = BytesOfOperand(call, Instruction::TOTALS);
  RETURN_IF_ERROR(state.flags->Copy(totals.data, flags, sizeof(flags)));
  state.skips = !step.own;
  if (!step.own) return absl::OkStatus();
  return MoveWithServers(call, Instruction::WEIGHTS, TurnMove::kReceive,
                         "parameters");
}

}  // namespace troupe
