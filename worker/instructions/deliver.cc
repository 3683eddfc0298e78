#include "worker/instructions/deliver.h"

#include <string>
#include <utility>

#include "ops/reduce.h"
#include "ops/tensor.h"
#include "proto/base/status.h"
#include "proto/plan/load_ranges.h"
#include "proto/plan/sums.h"
#include "proto/plan/trained.h"
#include "worker/instructions/turn_moves.h"

namespace troupe {

namespace {

// Of all gradients, which the replica has whole: servers clip by it.
void AddSquares(const Call& call, char* totals) {
  const RankState& state = call.state;
  const Plan& plan = *state.plan;
  const Tensor sum(totals + PlaceOfSum(plan, kSquaredNormSum).begin_bytes(),
                   DType::kF64, {1});
  for (const Instruction::Operand& operand : call.instruction.operands()) {
    if (operand.part() != Instruction::WEIGHT_GRADIENTS) continue;
    const Buffer& buffer = call.program.buffers(operand.buffer());
    char* const gradients = MemoryOf(call, buffer);
    const Unit& unit = plan.units(buffer.unit());
    const DType type = state.TypeOfGradients(buffer.unit());
    for (const Range& of : WeightRanges(unit, TrainedRange(unit))) {
      SumOfSquares(DeviceOf(call),
                   {.x = Tensor(gradients + of.begin * DTypeBytes(type), type,
                                {of.size()}),
                    .result = sum});
    }
  }
}

}  // namespace

absl::Status RunDeliver(const Call& call) {
  RankState& state = call.state;
  Device& device = DeviceOf(call);
  const OperandBytes totals = BytesOfOperand(call, Instruction::TOTALS);
  AddSquares(call, totals.data);
  std::string sums(totals.bytes, '\0');
  device.CopyToHost(sums.data(), totals.data, sums.size());
  RETURN_IF_ERROR(device.Synchronize());
  RETURN_IF_ERROR(state.turns->Deliver(std::move(sums)));
  return MoveWithServers(call, Instruction::WEIGHT_GRADIENTS, TurnMove::kSend,
                         "gradients");
}

}  // namespace troupe
