#include "ops/cpu/simd/loops.h"
#include "ops/cpu/simd/vec.h"
#include "ops/cpu/simd/vec_math.h"

namespace troupe {
namespace TROUPE_SIMD {
namespace {

// A Vec as f64, its lower and its upper lanes.
typedef double DoubleVec __attribute__((vector_size(kVecBytes)));
typedef float FloatHalf __attribute__((vector_size(kVecBytes / 2)));
struct Doubles {
  DoubleVec low, high;
};

inline Doubles ToDoubles(Vec v) {
  FloatHalf halves[2];
  __builtin_memcpy(halves, &v, sizeof(v));
  return {__builtin_convertvector(halves[0], DoubleVec),
          __builtin_convertvector(halves[1], DoubleVec)};
}

inline Vec ToFloats(const Doubles& v) {
  const FloatHalf halves[] = {__builtin_convertvector(v.low, FloatHalf),
                              __builtin_convertvector(v.high, FloatHalf)};
  Vec floats;
  __builtin_memcpy(&floats, halves, sizeof(floats));
  return floats;
}

inline double SumOfDoubles(DoubleVec v) {
  double sum = 0;
  for (int i = 0; i < kLanes / 2; ++i) sum += v[i];
  return sum;
}

// Squares of f32 are exact in f64.
struct MomentSums {
  Doubles values = {}, squares = {};

  void Add(Vec v) {
    const Doubles x = ToDoubles(v);
    values.low += x.low;
    values.high += x.high;
    squares.low += x.low * x.low;
    squares.high += x.high * x.high;
  }
};

// A row's A and B (ops/split_norm.h), while its dx is stored.
template <typename T, typename StoreDx>
inline void GradientSums(const RawSplitNormBackward<T>& a, int64_t row,
                         float mean, double* sum_g, double* sum_gd,
                         StoreDx store_dx) {
  const T* const dy = a.dy + row * a.n;
  const T* const x = a.x + row * a.n;
  Vec g_sums[2] = {}, gd_sums[2] = {};
  const auto add = [&](int which, int64_t i, auto l) {
    const Vec g = Load(dy + i, l) * Load(a.gamma + i, l);
    g_sums[which] += g;
    gd_sums[which] += g * (Load(x + i, l) - mean);
    store_dx(i, g, l);
  };
  int64_t i = 0;
  for (; i + 2 * kLanes <= a.n; i += 2 * kLanes) {
    add(0, i, Full{});
    add(1, i + kLanes, Full{});
  }
  ForEachVec(a.n - i, [&](int64_t j, auto l) { add(0, i + j, l); });
  *sum_g = Sum(g_sums[0] + g_sums[1]);
  *sum_gd = Sum(gd_sums[0] + gd_sums[1]);
}

}  // namespace

template <typename T>
void RowSums(const RawRowSums<T>& a) {
  for (int64_t row = 0; row < a.rows; ++row) {
    const T* const x = a.x + row * a.n;
    MomentSums even, odd;
    int64_t i = 0;
    for (; i + 2 * kLanes <= a.n; i += 2 * kLanes) {
      even.Add(Load(x + i));
      odd.Add(Load(x + i + kLanes));
    }
    ForEachVec(a.n - i,
               [&](int64_t j, auto l) { even.Add(Load(x + i + j, l)); });
    a.row_sums[2 * row] = SumOfDoubles((even.values.low + even.values.high) +
                                       (odd.values.low + odd.values.high));
    a.row_sums[2 * row + 1] =
        SumOfDoubles((even.squares.low + even.squares.high) +
                     (odd.squares.low + odd.squares.high));
  }
}

// g0 and 2 x g1 nearly cancel where a row's mean is large: both are f64.
template <typename T>
void RowSumsBackward(const RawRowSumsBackward<T>& a) {
  for (int64_t row = 0; row < a.rows; ++row) {
    const T* const x = a.x + row * a.n;
    T* const dx = a.dx + row * a.n;
    const double g0 = a.row_sums_gradient[2 * row];
    const double slope = 2 * a.row_sums_gradient[2 * row + 1];
    const auto gradient = [&](int64_t i, auto l) {
      const Doubles v = ToDoubles(Load(x + i, l));
      return ToFloats({g0 + slope * v.low, g0 + slope * v.high});
    };
    if (a.residual_gradient) {
      const T* const add = a.residual_gradient + row * a.n;
      ForEachVec(a.n, [&](int64_t i, auto l) {
        Store(dx + i, gradient(i, l) + Load(add + i, l), l);
      });
    } else {
      ForEachVec(a.n,
                 [&](int64_t i, auto l) { Store(dx + i, gradient(i, l), l); });
    }
  }
}

template <typename T>
void SplitNorm(const RawSplitNorm<T>& a) {
  for (int64_t row = 0; row < a.rows; ++row) {
    const double mean = a.centred ? a.row_sums[2 * row] / a.columns : 0;
    const double variance = a.row_sums[2 * row + 1] / a.columns - mean * mean;
    const double rstd =
        1 / __builtin_sqrt((variance < 0 ? 0 : variance) + a.epsilon);
    const float shift = static_cast<float>(mean);
    const float scale = static_cast<float>(rstd);
    const T* const x = a.x + row * a.n;
    T* const y = a.y + row * a.n;
    const auto normal = [&](int64_t i, auto l) {
      return (Load(x + i, l) - shift) * scale;
    };
    if (a.beta) {
      ForEachVec(a.n, [&](int64_t i, auto l) {
        const Vec beta = Load(a.beta + i, l);
        Store(y + i, normal(i, l) * Load(a.gamma + i, l) + beta, l);
      });
    } else {
      ForEachVec(a.n, [&](int64_t i, auto l) {
        Store(y + i, normal(i, l) * Load(a.gamma + i, l), l);
      });
    }
    if (a.mean) a.mean[row] = shift;
    if (a.rstd) a.rstd[row] = scale;
  }
}

template <typename T>
void SplitNormBackwardInput(const RawSplitNormBackward<T>& a) {
  for (int64_t row = 0; row < a.rows; ++row) {
    const float mean = a.mean ? a.mean[row] : 0;
    const float rstd = a.rstd[row];
    T* const dx = a.dx + row * a.n;
    double sum_g, sum_gd;
    if (a.residual_gradient) {
      const T* const residual = a.residual_gradient + row * a.n;
      GradientSums(a, row, mean, &sum_g, &sum_gd,
                   [&](int64_t i, Vec g, auto l) {
                     Store(dx + i, g * rstd + Load(residual + i, l), l);
                   });
    } else {
      GradientSums(
          a, row, mean, &sum_g, &sum_gd,
          [&](int64_t i, Vec g, auto l) { Store(dx + i, g * rstd, l); });
    }
    const double scale = rstd;
    const double g1 = -0.5 * scale * scale * scale * sum_gd / a.columns;
    a.row_sums_gradient[2 * row] =
        a.mean ? -scale * sum_g / a.columns - 2.0 * mean * g1 : 0;
    a.row_sums_gradient[2 * row + 1] = g1;
  }
}

template void RowSums(const RawRowSums<float>&);
template void RowSumsBackward(const RawRowSumsBackward<float>&);
template void SplitNorm(const RawSplitNorm<float>&);
template void SplitNormBackwardInput(const RawSplitNormBackward<float>&);
template void RowSums(const RawRowSums<uint16_t>&);
template void RowSumsBackward(const RawRowSumsBackward<uint16_t>&);
template void SplitNorm(const RawSplitNorm<uint16_t>&);
template void SplitNormBackwardInput(const RawSplitNormBackward<uint16_t>&);
template void RowSums(const RawRowSums<Fp16>&);
template void RowSumsBackward(const RawRowSumsBackward<Fp16>&);
template void SplitNorm(const RawSplitNorm<Fp16>&);
template void SplitNormBackwardInput(const RawSplitNormBackward<Fp16>&);

}  // namespace TROUPE_SIMD
}  // namespace troupe
