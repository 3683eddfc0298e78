// The gradient of a bias: the sum over the rows of the output's gradient,
// accumulated. Rows are added in f32 in a fixed order, in blocks whose sums are
// then added up (the error grows with the block count, not with the row count).
#ifndef TROUPE_OPS_BIAS_GRADIENT_H_
#define TROUPE_OPS_BIAS_GRADIENT_H_

#include "ops/tensor.h"

namespace troupe {

class Device;

struct BiasGradientArgs {
  Tensor dy;  // f32, bf16 or fp16 [rows, n], rows may be strided
  Tensor db;  // f32, or of dy's type [n], db += sum over rows of dy
};

void BiasGradient(Device& device, const BiasGradientArgs& args);

}  // namespace troupe

#endif  // TROUPE_OPS_BIAS_GRADIENT_H_
