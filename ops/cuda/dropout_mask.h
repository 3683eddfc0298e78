// Dropout's mask as kernels draw it: bit for bit that of every other device
// (ops/dropout.h), since both call proto/base/philox.h.
#ifndef TROUPE_OPS_CUDA_DROPOUT_MASK_H_
#define TROUPE_OPS_CUDA_DROPOUT_MASK_H_

#include <cmath>
#include <cstdint>

#include "ops/dropout.h"
#include "proto/base/philox.h"

namespace troupe::cuda {

// Element e is kept iff (number e >> 8) >= threshold. Threshold 0: no dropout.
struct RawDropout {
  PhiloxStream stream;
  uint64_t first_element;
  uint32_t threshold;
  float keep_scale;
};

inline RawDropout ToRaw(const DropoutMask& mask) {
  // PhiloxUniform(bits) >= p  <=>  bits >> 8 >= p * 2^24, exactly.
  const double threshold = std::ceil(double{mask.probability} * 16777216.0);
  return {.stream = mask.stream,
          .first_element = mask.first_element,
          .threshold = static_cast<uint32_t>(threshold),
          .keep_scale = 1.0f / (1.0f - mask.probability)};
}

// Of elements from 4 * block + shift on. A template on the shift, so that all
// numbers stay in registers.
template <int shift, int n>
__device__ inline void DropoutFactorsFrom(const RawDropout& dropout,
                                          uint64_t block, float (&factors)[n]) {
#pragma unroll
  for (int b = 0; b < (shift + n + 3) / 4; ++b) {
    const std::array<uint32_t, 4> bits = PhiloxBlock(dropout.stream, block + b);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int at = 4 * b + i - shift;
      if (at < 0 || at >= n) continue;
      factors[at] =
          bits[i] >> 8 >= dropout.threshold ? dropout.keep_scale : 0.0f;
    }
  }
}

// What n elements from `index` on are multiplied by: keep_scale or 0.
template <int n>
__device__ inline void DropoutFactors(const RawDropout& dropout, int64_t index,
                                      float (&factors)[n]) {
  const uint64_t element = dropout.first_element + index;
  switch (element % 4) {
    case 0:
      return DropoutFactorsFrom<0>(dropout, element / 4, factors);
    case 1:
      return DropoutFactorsFrom<1>(dropout, element / 4, factors);
    case 2:
      return DropoutFactorsFrom<2>(dropout, element / 4, factors);
    default:
      return DropoutFactorsFrom<3>(dropout, element / 4, factors);
  }
}

}  // namespace troupe::cuda

#endif  // TROUPE_OPS_CUDA_DROPOUT_MASK_H_
