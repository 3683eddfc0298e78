#include "ops/cpu/simd/loops.h"
#include "ops/cpu/simd/philox_vec.h"
#include "ops/cpu/simd/vec.h"
#include "ops/cpu/simd/vec_math.h"

namespace troupe {
namespace TROUPE_SIMD {
namespace {

// Keeps the lanes of a partial vector that lie outside out of a sum.
inline Vec Inside(Vec v, Full) { return v; }
inline Vec Inside(Vec v, Part part) {
  for (int i = part.count; i < kLanes; ++i) v[i] = 0;
  return v;
}

inline float Mean(const float* s, int64_t n) {
  Vec sums[4] = {};
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (int v = 0; v < 4; ++v) sums[v] += Load(s + i + v * kLanes);
  }
  ForEachVec(n - i, [&](int64_t j, auto l) { sums[0] += Load(s + i + j, l); });
  return Sum((sums[0] + sums[1]) + (sums[2] + sums[3])) / n;
}

inline float Variance(const float* s, float mean, int64_t n) {
  Vec sums[2] = {};
  ForEachVec(n, [&](int64_t i, auto l) {
    const Vec d = Inside(Load(s + i, l) - mean, l);
    sums[(i / kLanes) % 2] += d * d;
  });
  return Sum(sums[0] + sums[1]) / n;
}

}  // namespace

void LayerNorm(const RawLayerNorm& a) {
  for (int64_t row = 0; row < a.rows; ++row) {
    const int64_t at = row * a.n;
    const float* s = a.x + at;
    if (a.residual) {
      RawDropout dropout = a.dropout;
      dropout.first_element += at;
      Dropout(s, a.residual + at, a.sum + at, a.n, dropout);
      s = a.sum + at;
    }
    const float mean = Mean(s, a.n);
    const float rstd =
        1.0f / __builtin_sqrtf(Variance(s, mean, a.n) + a.epsilon);
    float* y = a.y + at;
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
void LayerNormBackwardInput(const RawLayerNormBackward& a) {
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
    float* dx = a.dx + at;
    if (const float* add = a.residual_gradient) {
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

namespace {

constexpr int64_t kRowBlock = 64;
constexpr int kTile = 4;

template <int vecs, typename Lanes>
inline void WeightTile(const RawLayerNormBackward& a, int64_t column,
                       Lanes lanes) {
  Vec gamma[vecs] = {};
  Vec beta[vecs] = {};
  for (int64_t begin = 0; begin < a.rows; begin += kRowBlock) {
    const int64_t end = begin + kRowBlock < a.rows ? begin + kRowBlock : a.rows;
    Vec block_gamma[vecs] = {};
    Vec block_beta[vecs] = {};
    for (int64_t row = begin; row < end; ++row) {
      const int64_t at = row * a.stride + column;
      for (int v = 0; v < vecs; ++v) {
        const Vec dy = Load(a.dy + at + v * kLanes, lanes);
        const Vec s = Load(a.s + at + v * kLanes, lanes);
        block_gamma[v] += dy * ((s - a.mean[row]) * a.rstd[row]);
        block_beta[v] += dy;
      }
    }
    for (int v = 0; v < vecs; ++v) {
      gamma[v] += block_gamma[v];
      beta[v] += block_beta[v];
    }
  }
  for (int v = 0; v < vecs; ++v) {
    float* to_gamma = a.dgamma + column + v * kLanes;
    float* to_beta = a.dbeta + column + v * kLanes;
    Store(to_gamma, Load(to_gamma, lanes) + gamma[v], lanes);
    Store(to_beta, Load(to_beta, lanes) + beta[v], lanes);
  }
}

}  // namespace

void LayerNormBackwardWeight(const RawLayerNormBackward& a) {
  int64_t i = 0;
  for (; i + kTile * kLanes <= a.n; i += kTile * kLanes) {
    WeightTile<kTile>(a, i, Full{});
  }
  for (; i + kLanes <= a.n; i += kLanes) WeightTile<1>(a, i, Full{});
  if (i < a.n) WeightTile<1>(a, i, Part{static_cast<int>(a.n - i)});
}

}  // namespace TROUPE_SIMD
}  // namespace troupe
