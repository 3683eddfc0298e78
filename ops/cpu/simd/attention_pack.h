// Packing for attention: a head's rows become dense padded blocks, in the order
// in which a product contracts them (block_product.h).
#ifndef TROUPE_OPS_CPU_SIMD_ATTENTION_PACK_H_
#define TROUPE_OPS_CPU_SIMD_ATTENTION_PACK_H_

#include "ops/cpu/simd/attention_blocks.h"
#include "ops/cpu/simd/factors.h"
#include "ops/cpu/simd/vec.h"
#include "ops/cpu/simd/vec_math.h"

namespace troupe {
namespace TROUPE_SIMD {

// to[r, 0..padded) = from[r], zeros beyond head_dim: to contract over head_dim.
template <typename T>
inline void PackRows(const T* from, int64_t stride, int64_t rows, int head_dim,
                     int padded, Element<T>* to) {
  T* const row = reinterpret_cast<T*>(to);
  for (int64_t r = 0; r < rows; ++r) {
    ForEachVec(head_dim, [&](int64_t i, auto l) {
      Store(row + r * padded + i, Load(from + r * stride + i, l));
    });
  }
}

// The same to contract over rows. Of an odd number the last row of bf16 gets
// one of zeros for its neighbour.
inline void PackColumns(const float* from, int64_t stride, int64_t rows,
                        int head_dim, int padded, float* to) {
  PackRows(from, stride, rows, head_dim, padded, to);
}
inline void PackColumns(const uint16_t* from, int64_t stride, int64_t rows,
                        int head_dim, int padded, uint32_t* to) {
  for (int64_t r = 0; r < rows; r += 2) {
    ForEachVec(head_dim, [&](int64_t i, auto l) {
      const uint16_t* const first = from + r * stride + i;
      const Vec second = r + 1 < rows ? Load(first + stride, l) : Vec{};
      // Widened, a bf16 is the upper half.
      Store(to + r / 2 * padded + i,
            ((UintVec)Load(first, l) >> 16) | (UintVec)second);
    });
  }
}

// A block [rows, kKeys] of results, to contract over keys (whose rows are
// Elements(kKeys)) and over rows. f32 stays where it is; bf16 is rounded into
// `room`, kQueries x kKeys of it.
inline const float* AlongKeys(const float* block, int, float*) { return block; }
inline const float* AlongRows(const float* block, int, float*) { return block; }
inline const uint32_t* AlongKeys(const float* block, int rows, uint32_t* room) {
  uint16_t* const to = reinterpret_cast<uint16_t*>(room);
  for (int i = 0; i < rows * kKeys; i += kLanes) {
    StoreFactor(to + i, Load(block + i));
  }
  return room;
}
inline const uint32_t* AlongRows(const float* block, int rows, uint32_t* room) {
  for (int r = 0; r < rows; r += 2) {
    const float* const first = block + r * kKeys;
    for (int i = 0; i < kKeys; i += kLanes) {
      const Vec second = r + 1 < rows ? Load(first + kKeys + i) : Vec{};
      Store(room + r / 2 * kKeys + i, Nearest(Load(first + i)) | Nearest(second)
                                                                     << 16);
    }
  }
  return room;
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

// The first numbers of a row as a vector of elements, zeros beyond `count`.
inline Vec LoadElements(const float* p, int64_t count) {
  return count >= kLanes ? Load(p) : Load(p, Part{static_cast<int>(count)});
}
inline Vec LoadElements(const uint16_t* p, int64_t count) {
  Vec v{};
  if (count >= 2 * kLanes) {
    __builtin_memcpy(&v, p, sizeof(v));
  } else {
    __builtin_memcpy(&v, p, count * sizeof(uint16_t));
  }
  return v;
}

// to[d, 0..kKeys) = element d of from[0..rows], zeros for rows that are not
// there: to contract over head_dim.
template <typename T>
inline void PackTransposed(const T* from, int64_t stride, int rows,
                           int head_dim, Element<T>* to) {
  constexpr int kStep = kLanes * Contracted<T>::kWidth;
  for (int row = 0; row < kKeys; row += kLanes) {
    for (int d = 0; d < head_dim; d += kStep) {
      const int left = head_dim - d;
      Vec square[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        square[i] = row + i < rows
                        ? LoadElements(from + (row + i) * stride + d, left)
                        : Vec{};
      }
      Transpose(square);
      float* const block =
          reinterpret_cast<float*>(to + Elements<T>(d) * kKeys);
      for (int i = 0; i < Least(kLanes, Elements<T>(left)); ++i) {
        Store(block + i * kKeys + row, square[i]);
      }
    }
  }
}

}  // namespace TROUPE_SIMD
}  // namespace troupe

#endif  // TROUPE_OPS_CPU_SIMD_ATTENTION_PACK_H_
