// How attention begins and ends with a result: it takes up what earlier calls
// have found, and stores what it has found itself.
#ifndef TROUPE_OPS_CPU_SIMD_ATTENTION_RESULT_H_
#define TROUPE_OPS_CPU_SIMD_ATTENTION_RESULT_H_

#include "ops/cpu/simd/raw_args.h"
#include "ops/cpu/simd/vec.h"

namespace troupe {
namespace TROUPE_SIMD {

// The result of the neighbouring head that begins `column` columns further on.
template <typename T>
inline RawResult<T> AtColumn(RawResult<T> result, int64_t column) {
  if (result.rounded) result.rounded += column;
  if (result.whole) result.whole += column;
  if (result.before) result.before += column;
  return result;
}

// Whether nothing need be done for rows to which nothing is added.
template <typename T>
inline bool InPlace(const RawResult<T>& result) {
  const void* const to =
      result.whole ? static_cast<const void*>(result.whole) : result.rounded;
  return result.before == to;
}

// to[0, padded) = the row of earlier calls; zeros where there were none, and
// beyond head_dim.
template <typename T>
inline void LoadBefore(const RawResult<T>& result, int64_t row, int head_dim,
                       int padded, float* to) {
  const float* const before = result.before + row * result.before_stride;
  int at = 0;
  if (result.before) {
    ForEachVec(head_dim, [&](int64_t i, auto lanes) {
      Store(to + i, Load(before + i, lanes));
    });
    at = padded;
  }
  for (; at < padded; at += kLanes) Store(to + at, Vec{});
}

// The row = from * factor, rounded once.
template <typename T>
inline void StoreResult(const RawResult<T>& result, int64_t row, int head_dim,
                        const float* from, float factor) {
  const auto store = [&](auto* to) {
    ForEachVec(head_dim, [&](int64_t i, auto lanes) {
      Store(to + i, Load(from + i) * factor, lanes);
    });
  };
  if (result.whole) {
    store(result.whole + row * result.stride);
  } else {
    store(result.rounded + row * result.stride);
  }
}

}  // namespace TROUPE_SIMD
}  // namespace troupe

#endif  // TROUPE_OPS_CPU_SIMD_ATTENTION_RESULT_H_
