#include "worker/instructions/grad_norm.h"

#include "ops/reduce.h"
#include "ops/tensor.h"
#include "proto/base/check.h"

namespace troupe {

absl::Status RunGradNorm(const Call& call) {
  const Range duty = DutyOf(call);
  char* const gradients = RestOf(call, Instruction::WEIGHT_GRADIENTS);
  const OperandBytes sum = BytesOfOperand(call, Instruction::TOTALS);
  CHECK_EQ(sum.bytes, sizeof(double));
  if (duty.size() == 0) return absl::OkStatus();
  const DType type = call.state.GradientsType();
  SumOfSquares(DeviceOf(call),
               {.x = Tensor(gradients + duty.begin * DTypeBytes(type), type,
                            {duty.size()}),
                .result = Tensor(sum.data, DType::kF64, {1})});
  return absl::OkStatus();
}

}  // namespace troupe
