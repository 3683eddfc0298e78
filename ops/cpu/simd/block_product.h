// Products of packed blocks: C (+)= A B with C in tiles of registers. For the
// small ones of attention, where a library call would cost more than the
// product, and for those of bf16 that is widened as it is packed.
#ifndef TROUPE_OPS_CPU_SIMD_BLOCK_PRODUCT_H_
#define TROUPE_OPS_CPU_SIMD_BLOCK_PRODUCT_H_

#include "ops/cpu/simd/factors.h"
#include "ops/cpu/simd/vec.h"

namespace troupe {
namespace TROUPE_SIMD {

// A is [m, k] with any strides (so a transposed block needs no copy); B is
// [k, n] and C [m, n], dense rows, n a multiple of kLanes. Elements of A and B
// are floats, or pairs of bf16 (uint32_t) that are neighbours along k, which
// counts pairs then.
template <typename Element>
struct Block {
  const Element* a;
  int64_t a_row, a_column;  // strides
  const Element* b;
  int64_t b_row;
  float* c;
  int64_t c_row;
  int m, n, k;
};

// Rows and vectors of one tile: as many accumulators as the registers hold.
#if defined(__AVX512F__)
constexpr int kTileRows = 6;
constexpr int kTileVecs = 4;
#elif defined(__AVX2__)
constexpr int kTileRows = 6;
constexpr int kTileVecs = 2;
#else
constexpr int kTileRows = 4;
constexpr int kTileVecs = 2;
#endif

// Not inline: among other code the compilers would spill the sums.
template <bool accumulate, int rows, int vecs, typename Element>
__attribute__((noinline)) void TileProduct(const Block<Element>& t,
                                           const Element* a, const Element* b,
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
    decltype(Load(b)) row[vecs];
#pragma GCC unroll 8
    for (int v = 0; v < vecs; ++v) row[v] = Load(b + v * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const Element scalar = a[r * t.a_row];
#pragma GCC unroll 8
      for (int v = 0; v < vecs; ++v) {
        sums[r][v] = AddProduct(sums[r][v], row[v], scalar);
      }
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
template <bool accumulate, int vecs, typename Element>
inline void StripeProduct(const Block<Element>& t, int column) {
  const Element* b = t.b + column;
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

template <bool accumulate, typename Element>
inline void BlockProduct(const Block<Element>& t) {
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
