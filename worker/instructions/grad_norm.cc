#include "worker/instructions/grad_norm.h"

#include "ops/reduce.h"
#include "ops/tensor.h"
#include "proto/base/check.h"
#include "proto/plan/load_ranges.h"

namespace troupe {

absl::Status RunGradNorm(const Call& call) {
  const Range duty = DutyOf(call);
  const StretchAtRest at = StretchOf(call);
  char* const gradients = RestOf(call, Instruction::WEIGHT_GRADIENTS, at);
  const OperandBytes sum = BytesOfOperand(call, Instruction::TOTALS);
  CHECK_EQ(sum.bytes, sizeof(double));
  if (duty.size() == 0) return absl::OkStatus();
  const DType type = call.state.TypeOfGradients(call.instruction.unit());
  const int64_t first = at.rests.begin;
  const Unit& unit = call.state.plan->units(call.instruction.unit());
  for (const Range& of :
       WeightRanges(unit, {duty.begin + first, duty.end + first})) {
    const int64_t begin = of.begin - first;
    SumOfSquares(
        DeviceOf(call),
        {.x = Tensor(gradients + begin * DTypeBytes(type), type, {of.size()}),
         .result = Tensor(sum.data, DType::kF64, {1})});
  }
  return absl::OkStatus();
}

}  // namespace troupe
