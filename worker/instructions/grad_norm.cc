#include "worker/instructions/grad_norm.h"

#include "ops/reduce.h"
#include "ops/tensor.h"

namespace troupe {

absl::Status RunGradNorm(const Call& call) {
  const int unit = call.instruction.unit();
  const int64_t elements = call.state.plan->units(unit).flat_elements();
  char* scalars = NeedOperand(call, Instruction::TOTALS);
  SumOfSquares(call.state.device,
               {.x = Tensor(NeedOperand(call, Instruction::WEIGHT_GRADIENTS),
                            DType::kF32, {elements}),
                .result = Tensor(scalars + kSquaredNorm * sizeof(double),
                                 DType::kF64, {1})});
  return absl::OkStatus();
}

}  // namespace troupe
