#include "ops/cpu/simd/column_sums.h"
#include "ops/cpu/simd/loops.h"
#include "ops/cpu/simd/norm_rows.h"
#include "ops/cpu/simd/vec.h"
#include "ops/cpu/simd/vec_math.h"

namespace troupe {
namespace TROUPE_SIMD {
namespace {

template <typename T>
inline float Mean(const T* s, int64_t n) {
  Vec sums[4] = {};
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (int v = 0; v < 4; ++v) sums[v] += Load(s + i + v * kLanes);
  }
  ForEachVec(n - i, [&](int64_t j, auto l) { sums[0] += Load(s + i + j, l); });
  return Sum((sums[0] + sums[1]) + (sums[2] + sums[3])) / n;
}

template <typename T>
inline float Variance(const T* s, float mean, int64_t n) {
  Vec sums[2] = {};
  ForEachVec(n, [&](int64_t i, auto l) {
    const Vec d = Inside(Load(s + i, l) - mean, l);
    sums[(i / kLanes) % 2] += d * d;
  });
  return Sum(sums[0] + sums[1]) / n;
}

}  // namespace

template <typename T>
void LayerNorm(const RawNorm<T>& a) {
  for (int64_t row = 0; row < a.rows; ++row) {
    const T* s = NormInput(a, row);
    const float mean = Mean(s, a.n);
    const float rstd =
        1.0f / __builtin_sqrtf(Variance(s, mean, a.n) + a.epsilon);
    T* y = a.y + row * a.n;
    ForEachVec(a.n, [&](int64_t i, auto l) {
      const Vec normal = (Load(s + i, l) - mean) * rstd;
      Store(y + i, normal * Load(a.gamma + i, l) + Load(a.beta + i, l), l);
    });
    if (a.mean) {
      a.mean[row] = mean;
      a.rstd[row] = rstd;
    }
  }
}

// With g = dy * gamma and h the normalised row:
// dx = rstd * (g - mean(g) - h * mean(g * h)).
template <typename T>
void LayerNormBackwardInput(const RawNormBackward<T>& a) {
  for (int64_t row = 0; row < a.rows; ++row) {
    const int64_t at = row * a.n;
    const float mean = a.mean[row];
    const float rstd = a.rstd[row];
    Vec sum_g[2] = {};
    Vec sum_gh[2] = {};
    ForEachVec(a.n, [&](int64_t i, auto l) {
      const Vec g = Load(a.dy + at + i, l) * Load(a.gamma + i, l);
      const int which = (i / kLanes) % 2;
      sum_g[which] += g;
      sum_gh[which] += g * ((Load(a.s + at + i, l) - mean) * rstd);
    });
    const float mean_g = Sum(sum_g[0] + sum_g[1]) / a.n;
    const float mean_gh = Sum(sum_gh[0] + sum_gh[1]) / a.n;
    const auto gradient = [&](int64_t i, auto l) {
      const Vec g = Load(a.dy + at + i, l) * Load(a.gamma + i, l);
      const Vec h = (Load(a.s + at + i, l) - mean) * rstd;
      return g - mean_g - h * mean_gh;
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
void LayerNormBackwardWeight(const RawNormBackward<T>& a) {
  float* const gradients[] = {a.dgamma, a.dbeta};
  SumColumns<2, 4>(a.rows, a.n, gradients,
                   [&](Vec* sums, int64_t row, int64_t column, auto l) {
                     const int64_t at = row * a.stride + column;
                     const Vec dy = Load(a.dy + at, l);
                     sums[0] +=
                         dy * ((Load(a.s + at, l) - a.mean[row]) * a.rstd[row]);
                     sums[1] += dy;
                   });
}

template void LayerNorm(const RawNorm<float>&);
template void LayerNormBackwardInput(const RawNormBackward<float>&);
template void LayerNormBackwardWeight(const RawNormBackward<float>&);
template void LayerNorm(const RawNorm<uint16_t>&);
template void LayerNormBackwardInput(const RawNormBackward<uint16_t>&);
template void LayerNormBackwardWeight(const RawNormBackward<uint16_t>&);
template void LayerNorm(const RawNorm<Fp16>&);
template void LayerNormBackwardInput(const RawNormBackward<Fp16>&);
template void LayerNormBackwardWeight(const RawNormBackward<Fp16>&);

}  // namespace TROUPE_SIMD
}  // namespace troupe
