#include "worker/instructions/grad_norm.h"

#include "ops/reduce.h"
#include "ops/tensor.h"

namespace troupe {

absl::Status RunGradNorm(const Call& call) {
  const auto [gradients, bytes] =
      BytesOfOperand(call, Instruction::WEIGHT_GRADIENTS);
  const int64_t elements = bytes / static_cast<int64_t>(sizeof(float));
  char* scalars = NeedOperand(call, Instruction::TOTALS);
  SumOfSquares(call.state.device,
               {.x = Tensor(gradients, DType::kF32, {elements}),
                .result = Tensor(scalars + kSquaredNorm * sizeof(double),
                                 DType::kF64, {1})});
  return absl::OkStatus();
}

}  // namespace troupe
