// What forward and backward attention share: the block sizes, packing of a
// head's rows into dense padded blocks, and which keys a query sees.
#ifndef TROUPE_OPS_CPU_SIMD_ATTENTION_BLOCKS_H_
#define TROUPE_OPS_CPU_SIMD_ATTENTION_BLOCKS_H_

#include "ops/cpu/simd/philox_vec.h"
#include "ops/cpu/simd/table.h"
#include "ops/cpu/simd/vec.h"

namespace troupe {
namespace TROUPE_SIMD {

constexpr int kQueries = 64;  // of a block
constexpr int kKeys = 64;     // of a block; a multiple of every kLanes
static_assert(kKeys % kLanes == 0 && kKeys <= kPhiloxRun);

inline int64_t RoundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
inline int64_t Least(int64_t a, int64_t b) { return a < b ? a : b; }

// to[r, 0..padded) = scale * from[r], zeros beyond head_dim.
inline void PackRows(const float* from, int64_t stride, int64_t rows,
                     int head_dim, int padded, float scale, float* to) {
  for (int64_t r = 0; r < rows; ++r) {
    ForEachVec(head_dim, [&](int64_t i, auto l) {
      Store(to + r * padded + i, Load(from + r * stride + i, l) * scale);
    });
  }
}

// to[d, 0..kKeys) = from[0..rows, d], zeros for rows that are not there.
inline void PackTransposed(const float* from, int64_t stride, int rows,
                           int head_dim, float* to) {
  if (rows < kKeys) {
    for (int i = 0; i < head_dim * kKeys; ++i) to[i] = 0;
  }
  for (int r = 0; r < rows; ++r) {
    for (int d = 0; d < head_dim; ++d) to[d * kKeys + r] = from[r * stride + d];
  }
}

// How many of the keys [key, key + kKeys) query sees.
inline int Visible(const RawAttention& a, int64_t query, int64_t key) {
  const int64_t seen = query + (a.kv_length - a.q_length) + 1 - key;
  return static_cast<int>(seen < 0 ? 0 : Least(seen, kKeys));
}

// The dropout numbers of one query for a block of keys.
inline const uint32_t* MaskBits(const RawAttention& a, int64_t query,
                                int64_t key, uint32_t* room) {
  const uint64_t element = a.dropout.first_element +
                           static_cast<uint64_t>(query * a.kv_length + key);
  return PhiloxRun(a.dropout.philox, element, kKeys, room);
}

}  // namespace TROUPE_SIMD
}  // namespace troupe

#endif  // TROUPE_OPS_CPU_SIMD_ATTENTION_BLOCKS_H_
