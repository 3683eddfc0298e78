#include "ops/cpu/simd/loops.h"
#include "ops/cpu/simd/vec.h"
#include "ops/cpu/simd/vec_math.h"

namespace troupe {
namespace TROUPE_SIMD {
namespace {

constexpr float kRoot = 0.7978845608028654f;  // sqrt(2 / pi)
constexpr float kCubic = 0.044715f;

// e^(-2u), where gelu(x) = x/2 (1 + tanh u) = x / (1 + e^(-2u)): the tanh form
// needs no tanh.
inline Vec ExpOfInner(Vec x) {
  return Exp((x * (-2 * kRoot)) * (1.0f + kCubic * x * x));
}

// P(x), how likely a normal number is below x.
inline Vec NormalBelow(Vec x) {
  constexpr float kRootHalf = 0.7071067811865476f;
  return 0.5f + 0.5f * Erf(x * kRootHalf);
}

inline Vec GeluOf(Vec x) { return x / (1.0f + ExpOfInner(x)); }

// With s = 1 / (1 + e): d = s + x s (1 - s) 2u', and 1 - s = e s. Far out the
// second term is zero, but infinite times zero if x is not held back.
inline Vec GeluSlope(Vec x) {
  const Vec e = ExpOfInner(x);
  const Vec s = 1.0f / (1.0f + e);
  const Vec near = Max(Set(-30.0f), Min(Set(30.0f), x));
  const Vec slope = (2 * kRoot) * (1.0f + (3 * kCubic) * near * near);
  return s + (near * slope) * (s * (e * s));
}

}  // namespace

template <typename T>
void Gelu(const T* x, T* y, int64_t n) {
  ForEachVec(
      n, [=](int64_t i, auto l) { Store(y + i, GeluOf(Load(x + i, l)), l); });
}

template <typename T>
void GeluBackward(const T* x, const T* dy, T* dx, int64_t n) {
  ForEachVec(n, [=](int64_t i, auto l) {
    Store(dx + i, Load(dy + i, l) * GeluSlope(Load(x + i, l)), l);
  });
}

template <typename T>
void GeluOfRow(const T* x, T* y, int64_t n, float weight) {
  ForEachVec(n, [=](int64_t i, auto l) {
    Store(y + i, GeluOf(Load(x + i, l)) * weight, l);
  });
}

template <typename T>
float GeluOfRowBackward(const T* x, const T* dy, T* dx, int64_t n,
                        float weight) {
  Vec sum{};
  ForEachVec(n, [=, &sum](int64_t i, auto l) {
    const Vec v = Load(x + i, l);
    const Vec of_y = Load(dy + i, l);
    sum += of_y * GeluOf(v);  // zero in lanes beyond n
    Store(dx + i, (of_y * weight) * GeluSlope(v), l);
  });
  return Sum(sum);
}

template <typename T>
void GeluExact(const T* x, T* y, int64_t n) {
  ForEachVec(n, [=](int64_t i, auto l) {
    const Vec v = Load(x + i, l);
    Store(y + i, v * NormalBelow(v), l);
  });
}

// d = P(x) + x p(x), p being the density. Far out p is zero; x is held back
// there, as infinite times zero is no number.
template <typename T>
void GeluExactBackward(const T* x, const T* dy, T* dx, int64_t n) {
  constexpr float kDensity = 0.3989422804014327f;  // 1 / sqrt(2 pi)
  ForEachVec(n, [=](int64_t i, auto l) {
    const Vec v = Load(x + i, l);
    const Vec near = Max(Set(-30.0f), Min(Set(30.0f), v));
    const Vec density = kDensity * Exp(-0.5f * near * near);
    Store(dx + i, Load(dy + i, l) * (NormalBelow(v) + near * density), l);
  });
}

template <typename T>
void Bias(T* c, const T* bias, T* pre, bool gelu, int64_t n) {
  const auto biased = [=](int64_t i, auto l) {
    return bias ? Load(c + i, l) + Load(bias + i, l) : Load(c + i, l);
  };
  if (!gelu) {
    ForEachVec(n, [=](int64_t i, auto l) { Store(c + i, biased(i, l), l); });
  } else if (pre) {
    ForEachVec(n, [=](int64_t i, auto l) {
      const Vec v = biased(i, l);
      Store(pre + i, v, l);
      Store(c + i, GeluOf(v), l);
    });
  } else {
    ForEachVec(
        n, [=](int64_t i, auto l) { Store(c + i, GeluOf(biased(i, l)), l); });
  }
}

template void Gelu(const float*, float*, int64_t);
template void GeluBackward(const float*, const float*, float*, int64_t);
template void GeluOfRow(const float*, float*, int64_t, float);
template float GeluOfRowBackward(const float*, const float*, float*, int64_t,
                                 float);
template void GeluExact(const float*, float*, int64_t);
template void GeluExactBackward(const float*, const float*, float*, int64_t);
template void Bias(float*, const float*, float*, bool, int64_t);
template void Gelu(const uint16_t*, uint16_t*, int64_t);
template void GeluBackward(const uint16_t*, const uint16_t*, uint16_t*,
                           int64_t);
template void GeluOfRow(const uint16_t*, uint16_t*, int64_t, float);
template float GeluOfRowBackward(const uint16_t*, const uint16_t*, uint16_t*,
                                 int64_t, float);
template void GeluExact(const uint16_t*, uint16_t*, int64_t);
template void GeluExactBackward(const uint16_t*, const uint16_t*, uint16_t*,
                                int64_t);
template void Bias(uint16_t*, const uint16_t*, uint16_t*, bool, int64_t);
template void Gelu(const Fp16*, Fp16*, int64_t);
template void GeluBackward(const Fp16*, const Fp16*, Fp16*, int64_t);
template void GeluOfRow(const Fp16*, Fp16*, int64_t, float);
template float GeluOfRowBackward(const Fp16*, const Fp16*, Fp16*, int64_t,
                                 float);
template void GeluExact(const Fp16*, Fp16*, int64_t);
template void GeluExactBackward(const Fp16*, const Fp16*, Fp16*, int64_t);
template void Bias(Fp16*, const Fp16*, Fp16*, bool, int64_t);

}  // namespace TROUPE_SIMD
}  // namespace troupe
