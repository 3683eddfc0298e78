// What forward and backward attention share: the block sizes, packing of a
// head's rows into dense padded blocks, and which keys a query sees.
#ifndef TROUPE_OPS_CPU_SIMD_ATTENTION_BLOCKS_H_
#define TROUPE_OPS_CPU_SIMD_ATTENTION_BLOCKS_H_

#include "ops/cpu/simd/philox_vec.h"
#include "ops/cpu/simd/table.h"
#include "ops/cpu/simd/vec.h"
#include "ops/cpu/simd/vec_math.h"

namespace troupe {
namespace TROUPE_SIMD {

constexpr int kQueries = 64;  // of a block
constexpr int kKeys = 64;     // of a block; a multiple of every kLanes
static_assert(kKeys % kLanes == 0 && kKeys <= kPhiloxRun);

inline int64_t RoundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
inline int64_t Least(int64_t a, int64_t b) { return a < b ? a : b; }

// to[r, 0..padded) = scale * from[r], zeros beyond head_dim.
template <typename T>
inline void PackRows(const T* from, int64_t stride, int64_t rows, int head_dim,
                     int padded, float scale, float* to) {
  for (int64_t r = 0; r < rows; ++r) {
    ForEachVec(head_dim, [&](int64_t i, auto l) {
      Store(to + r * padded + i, Load(from + r * stride + i, l) * scale);
    });
  }
}

// Turns a square of kLanes rows into its transpose: each of the log2(kLanes)
// rounds is a perfect shuffle of the rows, interleaving their lanes.
inline void Transpose(Vec* square) {
  for (int round = 1; round < kLanes; round *= 2) {
    Vec next[kLanes];
    for (int i = 0; i < kLanes / 2; ++i) {
      next[2 * i] = InterleaveLow(square[i], square[i + kLanes / 2]);
      next[2 * i + 1] = InterleaveHigh(square[i], square[i + kLanes / 2]);
    }
    for (int i = 0; i < kLanes; ++i) square[i] = next[i];
  }
}

// to[d, 0..kKeys) = from[0..rows, d], zeros for rows that are not there.
template <typename T>
inline void PackTransposed(const T* from, int64_t stride, int rows,
                           int head_dim, float* to) {
  for (int row = 0; row < kKeys; row += kLanes) {
    ForEachVec(head_dim, [&](int64_t d, auto l) {
      Vec square[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        square[i] =
            row + i < rows ? Load(from + (row + i) * stride + d, l) : Vec{};
      }
      Transpose(square);
      for (int i = 0; i < l.count; ++i) {
        Store(to + (d + i) * kKeys + row, square[i]);
      }
    });
  }
}

// How many of the keys [key, key + kKeys) query sees.
template <typename T>
inline int Visible(const RawAttention<T>& a, int64_t query, int64_t key) {
  const int64_t seen = query + (a.kv_length - a.q_length) + 1 - key;
  return static_cast<int>(seen < 0 ? 0 : Least(seen, kKeys));
}

// The dropout numbers of one query for a block of keys.
template <typename T>
inline const uint32_t* MaskBits(const RawAttention<T>& a, int64_t query,
                                int64_t key, uint32_t* room) {
  const uint64_t element = a.dropout.first_element +
                           static_cast<uint64_t>(query * a.kv_length + key);
  return PhiloxRun(a.dropout.philox, element, kKeys, room);
}

}  // namespace TROUPE_SIMD
}  // namespace troupe

#endif  // TROUPE_OPS_CPU_SIMD_ATTENTION_BLOCKS_H_
