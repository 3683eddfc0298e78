// What layer norm and RMS norm share: the residual connection in front of them,
// and sums over one row.
#ifndef TROUPE_OPS_CPU_SIMD_NORM_ROWS_H_
#define TROUPE_OPS_CPU_SIMD_NORM_ROWS_H_

#include "ops/cpu/simd/loops.h"
#include "ops/cpu/simd/vec.h"
#include "ops/cpu/simd/vec_math.h"

namespace troupe {
namespace TROUPE_SIMD {

// The row that is normalised: x itself or, with a residual, their sum as it is
// stored, so that the backward sees the same numbers.
template <typename T>
inline const T* NormInput(const RawNorm<T>& a, int64_t row) {
  const int64_t at = row * a.n;
  if (!a.residual) return a.x + at;
  RawDropout dropout = a.dropout;
  dropout.first_element += at;
  Dropout(a.x + at, a.residual + at, a.sum + at, a.n, dropout);
  return a.sum + at;
}

// Keeps the lanes of a partial vector that lie outside out of a sum.
inline Vec Inside(Vec v, Full) { return v; }
inline Vec Inside(Vec v, Part part) {
  for (int i = part.count; i < kLanes; ++i) v[i] = 0;
  return v;
}

}  // namespace TROUPE_SIMD
}  // namespace troupe

#endif  // TROUPE_OPS_CPU_SIMD_NORM_ROWS_H_
