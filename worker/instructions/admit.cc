#include "worker/instructions/admit.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/sums.h"
#include "worker/instructions/turn_moves.h"

namespace troupe {
namespace {

// What the replica has summed, with what all ranks know of the step.
absl::Status TakeSums(const Call& call, const TurnEvent& delivery) {
  RankState& state = call.state;
  const OperandBytes totals = BytesOfOperand(call, Instruction::TOTALS);
  if (static_cast<int64_t>(delivery.sums.size()) != totals.bytes) {
    return absl::InternalError(absl::StrCat(
        "replica ", delivery.by, " delivers ", delivery.sums.size(),
        " bytes of sums, the plan has ", totals.bytes));
  }
  std::vector<double> sums(totals.bytes / sizeof(double));
  std::memcpy(sums.data(), delivery.sums.data(), delivery.sums.size());
  const auto set = [&](const char* name, double value) {
    sums[PlaceOfSum(*state.plan, name).first] = value;
  };
  const int64_t step = StepOf(call);
  const TurnLog::Asked asked = state.turns->AskedAfter(step);
  set(kStopSum, asked.stop ? 1 : 0);
  set(kSaveSum, asked.save ? 1 : 0);
  const Turn& turn = state.turns->DeliveredIn(step);
  set(kTurnReplicaSum, turn.replica());
  set(kTurnBatchSum, static_cast<double>(turn.batch()));
  set(kTurnWeightsSum, static_cast<double>(turn.weights_step()));
  Device& device = DeviceOf(call);
  device.CopyFromHost(totals.data, sums.data(), totals.bytes);
  return device.Synchronize();
}

}  // namespace

absl::Status RunAdmit(const Call& call) {
  TurnLog& turns = *call.state.turns;
  while (true) {
    ASSIGN_OR_RETURN(const TurnEvent event,
                     turns.Next(StepOf(call), AskedOf(call)));
    if (event.kind == TurnEvent::kClaim) {
      RETURN_IF_ERROR(MoveWithReplica(call, Instruction::SLICE, TurnMove::kSend,
                                      event.by, "parameters"));
      continue;
    }
    RETURN_IF_ERROR(TakeSums(call, event));
    return MoveWithReplica(call, Instruction::WEIGHT_GRADIENTS,
                           TurnMove::kReceive, event.by, "gradients");
  }
}

}  // namespace troupe
