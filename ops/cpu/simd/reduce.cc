#include "ops/cpu/simd/loops.h"
#include "ops/cpu/simd/vec.h"
#include "ops/cpu/simd/vec_math.h"

namespace troupe {
namespace TROUPE_SIMD {
namespace {

// Rows summed in f32 before the sum moves on to the total: short enough that
// rounding stays small, long enough that moving costs nothing.
constexpr int64_t kRowBlock = 64;
constexpr int kTile = 8;  // vectors of columns in registers

// Columns of one tile of `vecs` full vectors.
template <int vecs, typename Lanes>
inline void SumTile(const float* dy, int64_t rows, int64_t stride, float* db,
                    Lanes lanes) {
  Vec total[vecs] = {};
  for (int64_t begin = 0; begin < rows; begin += kRowBlock) {
    const int64_t end = begin + kRowBlock < rows ? begin + kRowBlock : rows;
    Vec block[vecs] = {};
    for (int64_t r = begin; r < end; ++r) {
      for (int v = 0; v < vecs; ++v) {
        block[v] += Load(dy + r * stride + v * kLanes, lanes);
      }
    }
    for (int v = 0; v < vecs; ++v) total[v] += block[v];
  }
  for (int v = 0; v < vecs; ++v) {
    float* to = db + v * kLanes;
    Store(to, Load(to, lanes) + total[v], lanes);
  }
}

}  // namespace

void ColumnSum(const float* dy, int64_t rows, int64_t stride, float* db,
               int64_t n) {
  int64_t i = 0;
  for (; i + kTile * kLanes <= n; i += kTile * kLanes) {
    SumTile<kTile>(dy + i, rows, stride, db + i, Full{});
  }
  for (; i + kLanes <= n; i += kLanes) {
    SumTile<1>(dy + i, rows, stride, db + i, Full{});
  }
  if (i < n) {
    SumTile<1>(dy + i, rows, stride, db + i, Part{static_cast<int>(n - i)});
  }
}

double SumOfSquares(const float* x, int64_t n) {
  constexpr int64_t kBlock = 1024;
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t count = n - begin < kBlock ? n - begin : kBlock;
    const float* from = x + begin;
    Vec sums[4] = {};
    int64_t i = 0;
    for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
      for (int v = 0; v < 4; ++v) {
        const Vec value = Load(from + i + v * kLanes);
        sums[v] += value * value;
      }
    }
    for (; i < count; i += kLanes) {
      const int rest =
          static_cast<int>(count - i < kLanes ? count - i : kLanes);
      const Vec value = Load(from + i, Part{rest});
      sums[0] += value * value;
    }
    total += Sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
  }
  return total;
}

void SoftmaxSum(const float* x, int64_t n, float* largest, double* sum) {
  constexpr int64_t kBlock = 1024;
  float top = -__builtin_inff();
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t count = n - begin < kBlock ? n - begin : kBlock;
    const float* from = x + begin;
    Vec block_top = Set(from[0]);
    int64_t whole = 0;
    for (; whole + kLanes <= count; whole += kLanes) {
      block_top = Max(block_top, Load(from + whole));
    }
    float next = MaxLane(block_top);
    for (int64_t i = whole; i < count; ++i) {
      if (from[i] > next) next = from[i];
    }
    if (next > top) {
      total *= __builtin_exp(static_cast<double>(top) - next);
      top = next;
    }
    Vec sums{};
    for (int64_t i = 0; i < whole; i += kLanes)
      sums += Exp(Load(from + i) - top);
    float block_sum = Sum(sums);
    if (whole < count) {
      const Part rest{static_cast<int>(count - whole)};
      const Vec e = Exp(Load(from + whole, rest) - top);
      for (int i = 0; i < rest.count; ++i) block_sum += e[i];
    }
    total += block_sum;
  }
  *largest = top;
  *sum = total;
}

void ExpScaled(float* x, int64_t n, float shift, float scale) {
  ForEachVec(n, [=](int64_t i, auto l) {
    Store(x + i, Exp(Load(x + i, l) - shift) * scale, l);
  });
}

}  // namespace TROUPE_SIMD
}  // namespace troupe
