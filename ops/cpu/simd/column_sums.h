// Sums over the rows of a matrix, column by column: the gradients of biases and
// of norms' weights. Rows are added in order, in blocks whose sums are then
// added up: short enough that rounding stays small, long enough that moving on
// costs nothing.
#ifndef TROUPE_OPS_CPU_SIMD_COLUMN_SUMS_H_
#define TROUPE_OPS_CPU_SIMD_COLUMN_SUMS_H_

#include "ops/cpu/simd/vec.h"

namespace troupe {
namespace TROUPE_SIMD {

// Of a tile of `vecs` vectors of columns, whose sums stay in registers.
// term(sums, row, offset, lanes) adds to each of sums[outputs] what the vector
// `offset` columns into the tile has in this row.
template <int outputs, int vecs, typename Lanes, typename Term>
inline __attribute__((always_inline)) void SumTile(int64_t rows,
                                                   float* const (&to)[outputs],
                                                   int64_t column, Lanes lanes,
                                                   const Term& term) {
  constexpr int64_t kRowBlock = 64;
  Vec total[vecs][outputs] = {};
  for (int64_t begin = 0; begin < rows; begin += kRowBlock) {
    const int64_t end = begin + kRowBlock < rows ? begin + kRowBlock : rows;
    Vec block[vecs][outputs] = {};
    for (int64_t row = begin; row < end; ++row) {
      for (int v = 0; v < vecs; ++v) {
        term(block[v], row, column + v * kLanes, lanes);
      }
    }
    for (int v = 0; v < vecs; ++v) {
      for (int o = 0; o < outputs; ++o) total[v][o] += block[v][o];
    }
  }
  for (int v = 0; v < vecs; ++v) {
    for (int o = 0; o < outputs; ++o) {
      float* sums = to[o] + column + v * kLanes;
      Store(sums, Load(sums, lanes) + total[v][o], lanes);
    }
  }
}

// to[o][0, n) += the sums over all rows, `tile` vectors of columns at a time.
template <int outputs, int tile, typename Term>
inline void SumColumns(int64_t rows, int64_t n, float* const (&to)[outputs],
                       const Term& term) {
  int64_t i = 0;
  for (; i + tile * kLanes <= n; i += tile * kLanes) {
    SumTile<outputs, tile>(rows, to, i, Full{}, term);
  }
  for (; i + kLanes <= n; i += kLanes) {
    SumTile<outputs, 1>(rows, to, i, Full{}, term);
  }
  if (i < n) {
    SumTile<outputs, 1>(rows, to, i, Part{static_cast<int>(n - i)}, term);
  }
}

}  // namespace TROUPE_SIMD
}  // namespace troupe

#endif  // TROUPE_OPS_CPU_SIMD_COLUMN_SUMS_H_
