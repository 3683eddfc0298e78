#include "ops/cpu/simd/column_sums.h"
#include "ops/cpu/simd/loops.h"
#include "ops/cpu/simd/norm_rows.h"
#include "ops/cpu/simd/vec.h"
#include "ops/cpu/simd/vec_math.h"

namespace troupe {
namespace TROUPE_SIMD {
namespace {

template <typename T>
inline float MeanSquare(const T* s, int64_t n) {
  Vec sums[4] = {};
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (int v = 0; v < 4; ++v) {
      const Vec value = Load(s + i + v * kLanes);
      sums[v] += value * value;
    }
  }
  ForEachVec(n - i, [&](int64_t j, auto l) {
    const Vec value = Load(s + i + j, l);
    sums[0] += value * value;
  });
  return Sum((sums[0] + sums[1]) + (sums[2] + sums[3])) / n;
}

}  // namespace

template <typename T>
void RmsNorm(const RawNorm<T>& a) {
  for (int64_t row = 0; row < a.rows; ++row) {
    const T* s = NormInput(a, row);
    const float rstd = 1.0f / __builtin_sqrtf(MeanSquare(s, a.n) + a.epsilon);
    T* y = a.y + row * a.n;
    ForEachVec(a.n, [&](int64_t i, auto l) {
      Store(y + i, (Load(s + i, l) * rstd) * Load(a.gamma + i, l), l);
    });
    if (a.rstd) a.rstd[row] = rstd;
  }
}

// With g = dy * gamma and h = s * rstd the normalised row:
// dx = rstd * (g - h * mean(g * h)).
template <typename T>
void RmsNormBackwardInput(const RawNormBackward<T>& a) {
  for (int64_t row = 0; row < a.rows; ++row) {
    const int64_t at = row * a.n;
    const T* dy = a.dy + at;
    const T* s = a.s + at;
    const float rstd = a.rstd[row];
    Vec sums[2] = {};
    ForEachVec(a.n, [&](int64_t i, auto l) {
      const Vec g = Load(dy + i, l) * Load(a.gamma + i, l);
      sums[(i / kLanes) % 2] += g * (Load(s + i, l) * rstd);
    });
    const float mean = Sum(sums[0] + sums[1]) / a.n;
    const auto gradient = [&](int64_t i, auto l) {
      const Vec g = Load(dy + i, l) * Load(a.gamma + i, l);
      return g - (Load(s + i, l) * rstd) * mean;
    };
    T* dx = a.dx + at;
    if (const T* add = a.residual_gradient) {
      ForEachVec(a.n, [&](int64_t i, auto l) {
        Store(dx + i, gradient(i, l) * rstd + Load(add + at + i, l), l);
      });
    } else {
      ForEachVec(a.n, [&](int64_t i, auto l) {
        Store(dx + i, gradient(i, l) * rstd, l);
      });
    }
  }
}

template <typename T>
void RmsNormBackwardWeight(const RawNormBackward<T>& a) {
  float* const gradients[] = {a.dgamma};
  SumColumns<1, 4>(a.rows, a.n, gradients,
                   [&](Vec* sums, int64_t row, int64_t column, auto l) {
                     const int64_t at = row * a.stride + column;
                     sums[0] +=
                         Load(a.dy + at, l) * (Load(a.s + at, l) * a.rstd[row]);
                   });
}

template void RmsNorm(const RawNorm<float>&);
template void RmsNormBackwardInput(const RawNormBackward<float>&);
template void RmsNormBackwardWeight(const RawNormBackward<float>&);
template void RmsNorm(const RawNorm<uint16_t>&);
template void RmsNormBackwardInput(const RawNormBackward<uint16_t>&);
template void RmsNormBackwardWeight(const RawNormBackward<uint16_t>&);
template void RmsNorm(const RawNorm<Fp16>&);
template void RmsNormBackwardInput(const RawNormBackward<Fp16>&);
template void RmsNormBackwardWeight(const RawNormBackward<Fp16>&);

}  // namespace TROUPE_SIMD
}  // namespace troupe
