// A small tensor of parameters as f32.
#ifndef TROUPE_OPS_CPU_FLOATS_OF_H_
#define TROUPE_OPS_CPU_FLOATS_OF_H_

#include <vector>

#include "ops/tensor.h"

namespace troupe::cpu {

// Of f32, bf16 or fp16, dense; none where it is not defined.
std::vector<float> FloatsOf(const Tensor& tensor);

}  // namespace troupe::cpu

#endif  // TROUPE_OPS_CPU_FLOATS_OF_H_
