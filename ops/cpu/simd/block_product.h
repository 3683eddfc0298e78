// Products of small packed blocks, for attention: C (+)= A B with C in tiles of
// registers. A library call would cost more than the product.
#ifndef TROUPE_OPS_CPU_SIMD_BLOCK_PRODUCT_H_
#define TROUPE_OPS_CPU_SIMD_BLOCK_PRODUCT_H_

#include "ops/cpu/simd/vec.h"

namespace troupe {
namespace TROUPE_SIMD {

// A is [m, k] with any strides (so a transposed block needs no copy); B is
// [k, n] and C [m, n], dense rows, n a multiple of kLanes.
struct Block {
  const float* a;
  int64_t a_row, a_column;  // strides
  const float* b;
  int64_t b_row;
  float* c;
  int64_t c_row;
  int m, n, k;
};

// Rows and vectors of one tile: as many accumulators as the registers hold.
#if defined(__AVX512F__)
constexpr int kTileRows = 6;
constexpr int kTileVecs = 4;
#else
constexpr int kTileRows = 4;
constexpr int kTileVecs = 2;
#endif

template <bool accumulate, int rows, int vecs>
inline void TileProduct(const Block& t, const float* a, const float* b,
                        float* c) {
  Vec sums[rows][vecs];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < vecs; ++v) {
      sums[r][v] = accumulate ? Load(c + r * t.c_row + v * kLanes) : Vec{};
    }
  }
  for (int p = 0; p < t.k; ++p) {
    Vec row[vecs];
#pragma GCC unroll 8
    for (int v = 0; v < vecs; ++v) row[v] = Load(b + v * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const float scalar = a[r * t.a_row];
#pragma GCC unroll 8
      for (int v = 0; v < vecs; ++v) sums[r][v] += row[v] * scalar;
    }
    a += t.a_column;
    b += t.b_row;
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < vecs; ++v)
      Store(c + r * t.c_row + v * kLanes, sums[r][v]);
  }
}

// All rows of a stripe of `vecs` vectors.
template <bool accumulate, int vecs>
inline void StripeProduct(const Block& t, int column) {
  const float* b = t.b + column;
  int r = 0;
  for (; r + kTileRows <= t.m; r += kTileRows) {
    TileProduct<accumulate, kTileRows, vecs>(t, t.a + r * t.a_row, b,
                                             t.c + r * t.c_row + column);
  }
  if (kTileRows > 4 && r + 4 <= t.m) {
    TileProduct<accumulate, 4, vecs>(t, t.a + r * t.a_row, b,
                                     t.c + r * t.c_row + column);
    r += 4;
  }
  for (; r + 2 <= t.m; r += 2) {
    TileProduct<accumulate, 2, vecs>(t, t.a + r * t.a_row, b,
                                     t.c + r * t.c_row + column);
  }
  if (r < t.m) {
    TileProduct<accumulate, 1, vecs>(t, t.a + r * t.a_row, b,
                                     t.c + r * t.c_row + column);
  }
}

template <bool accumulate>
inline void BlockProduct(const Block& t) {
  int column = 0;
  for (; column + kTileVecs * kLanes <= t.n; column += kTileVecs * kLanes) {
    StripeProduct<accumulate, kTileVecs>(t, column);
  }
  for (; column < t.n; column += kLanes) {
    StripeProduct<accumulate, 1>(t, column);
  }
}

}  // namespace TROUPE_SIMD
}  // namespace troupe

#endif  // TROUPE_OPS_CPU_SIMD_BLOCK_PRODUCT_H_
