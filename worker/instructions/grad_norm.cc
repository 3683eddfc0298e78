#include "worker/instructions/grad_norm.h"

#include "ops/reduce.h"
#include "ops/tensor.h"

namespace troupe {

absl::Status RunGradNorm(const Call& call) {
  constexpr int64_t kBytes = sizeof(float);
  const auto [gradients, bytes] =
      BytesOfOperand(call, Instruction::WEIGHT_GRADIENTS);
  const Range slice = SliceOf(call, bytes / kBytes);
  char* scalars = NeedOperand(call, Instruction::TOTALS);
  if (slice.size() == 0) return absl::OkStatus();
  SumOfSquares(call.state.device,
               {.x = Tensor(gradients + slice.begin * kBytes, DType::kF32,
                            {slice.size()}),
                .result = Tensor(scalars + kSquaredNorm * sizeof(double),
                                 DType::kF64, {1})});
  return absl::OkStatus();
}

}  // namespace troupe
