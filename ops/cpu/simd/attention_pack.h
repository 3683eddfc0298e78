// Packing for attention: a head's rows become dense padded blocks, in the order
// in which a product contracts them (block_product.h).
#ifndef TROUPE_OPS_CPU_SIMD_ATTENTION_PACK_H_
#define TROUPE_OPS_CPU_SIMD_ATTENTION_PACK_H_

#include "ops/cpu/simd/attention_blocks.h"
#include "ops/cpu/simd/factors.h"
#include "ops/cpu/simd/transpose.h"
#include "ops/cpu/simd/vec.h"
#include "ops/cpu/simd/vec_math.h"

namespace troupe {
namespace TROUPE_SIMD {

// Rows of a head are a stride apart, which the processor's own prefetching does
// not follow: asks for the row some way ahead.
template <typename T>
inline void PrefetchAhead(const T* row, int64_t stride, int head_dim) {
  constexpr int kAhead = 12;
  constexpr int kLineBytes = 64;
  // May lie beyond the array, where there is no pointer but an address.
  const uintptr_t ahead = reinterpret_cast<uintptr_t>(row) +
                          kAhead * stride * static_cast<int64_t>(sizeof(T));
  for (uintptr_t at = 0; at < head_dim * sizeof(T); at += kLineBytes) {
    __builtin_prefetch(reinterpret_cast<const void*>(ahead + at));
  }
}

// As they are, or widened.
template <typename T>
inline void CopyFactors(const T* from, int count, T* to) {
  __builtin_memcpy(to, from, count * sizeof(T));
}
inline void CopyFactors(const uint16_t* from, int count, float* to) {
  ForEachVec(count,
             [&](int64_t i, auto l) { Store(to + i, Load(from + i, l), l); });
}
inline void CopyFactors(const Fp16* from, int count, float* to) {
  ForEachVec(count,
             [&](int64_t i, auto l) { Store(to + i, Load(from + i, l), l); });
}

// to[r, 0..padded) = from[r], zeros beyond head_dim: to contract over head_dim.
template <typename T>
inline void PackRows(const T* from, int64_t stride, int64_t rows, int head_dim,
                     int padded, Element<T>* to) {
  for (int64_t r = 0; r < rows; ++r) {
    PrefetchAhead(from + r * stride, stride, head_dim);
    Factor<T>* const row = reinterpret_cast<Factor<T>*>(to) + r * padded;
    CopyFactors(from + r * stride, head_dim, row);
    __builtin_memset(row + head_dim, 0,
                     (padded - head_dim) * sizeof(Factor<T>));
  }
}

// The same to contract over rows.
template <typename T>
inline void PackColumns(const T* from, int64_t stride, int64_t rows,
                        int head_dim, int padded, float* to) {
  PackRows(from, stride, rows, head_dim, padded, to);
}

#if defined(__AVX512BF16__)
// In each lane a pair of bf16, of two that were widened.
inline UintVec Pairs(Vec low, Vec high) {
  return ((UintVec)low >> 16) | (UintVec)high;
}

// Of an odd number of rows the last one gets one of zeros for its neighbour.
inline void PackColumns(const uint16_t* from, int64_t stride, int64_t rows,
                        int head_dim, int padded, uint32_t* to) {
  for (int64_t r = 0; r < rows; r += 2) {
    PrefetchAhead(from + r * stride, stride, head_dim);
    PrefetchAhead(from + (r + 1) * stride, stride, head_dim);
    ForEachVec(head_dim, [&](int64_t i, auto l) {
      const uint16_t* const first = from + r * stride + i;
      const Vec second = r + 1 < rows ? Load(first + stride, l) : Vec{};
      Store(to + r / 2 * padded + i, Pairs(Load(first, l), second));
    });
  }
}
#endif

// The first numbers of a row as a vector of elements, zeros beyond `count`.
template <typename T>
inline Vec LoadElements(const T* p, int64_t count) {
  return count >= kLanes ? Load(p) : Load(p, Part{static_cast<int>(count)});
}
#if defined(__AVX512BF16__)
inline Vec LoadElements(const uint16_t* p, int64_t count) {
  Vec v{};
  if (count >= 2 * kLanes) {
    __builtin_memcpy(&v, p, sizeof(v));
  } else {
    __builtin_memcpy(&v, p, count * sizeof(uint16_t));
  }
  return v;
}
#endif

// to[d, row..row + kLanes) = element d of the rows from `row` on. `all`: they
// are all there, and so are the elements of a vector.
template <bool all, typename T>
inline void PackSquare(const T* from, int64_t stride, int rows, int elements,
                       float* to) {
  Vec square[kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) {
    square[i] =
        all || i < rows ? LoadElements(from + i * stride, elements) : Vec{};
  }
  Transpose(square);
  const int stored = all ? kLanes : Least(kLanes, Elements<T>(elements));
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) {
    if (all || i < stored) Store(to + i * kKeys, square[i]);
  }
}

// to[d, 0..kKeys) = element d of from[0..rows], zeros for rows that are not
// there: to contract over head_dim.
template <typename T>
inline void PackTransposed(const T* from, int64_t stride, int rows,
                           int head_dim, Element<T>* to) {
  constexpr int kStep = kLanes * Contracted<T>::kWidth;
  for (int row = 0; row < kKeys; row += kLanes) {
    const T* const at = from + row * stride;
    float* const block = reinterpret_cast<float*>(to) + row;
    int d = 0;
    if (row + kLanes <= rows) {
      for (; d + kStep <= head_dim; d += kStep) {
        PackSquare<true>(at + d, stride, kLanes, kStep,
                         block + Elements<T>(d) * kKeys);
      }
    }
    for (; d < head_dim; d += kStep) {
      PackSquare<false>(at + d, stride, rows - row, head_dim - d,
                        block + Elements<T>(d) * kKeys);
    }
  }
}

}  // namespace TROUPE_SIMD
}  // namespace troupe

#endif  // TROUPE_OPS_CPU_SIMD_ATTENTION_PACK_H_
