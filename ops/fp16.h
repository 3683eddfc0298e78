// An element of fp16, as it lies in memory; proto/base/fp16.h says what its
// bits are. A type of its own, as those of bf16 are uint16_t. The sources of
// ops/cpu/simd read this, so it stays plain.
#ifndef TROUPE_OPS_FP16_H_
#define TROUPE_OPS_FP16_H_

#include <stdint.h>

namespace troupe {

struct Fp16 {
  uint16_t bits;
};

}  // namespace troupe

#endif  // TROUPE_OPS_FP16_H_
