// Functions of a Vec: across its lanes, and of each lane.
#ifndef TROUPE_OPS_CPU_SIMD_VEC_MATH_H_
#define TROUPE_OPS_CPU_SIMD_VEC_MATH_H_

#include "ops/cpu/simd/vec.h"

namespace troupe {
namespace TROUPE_SIMD {

// Where one is not a number, the result is b.
inline Vec Max(Vec a, Vec b) { return a > b ? a : b; }
inline Vec Min(Vec a, Vec b) { return a < b ? a : b; }

// The lanes folded into one, halves onto halves.
template <typename Fold>
inline float FoldLanes(Vec v, Fold fold) {
  typedef float Four __attribute__((vector_size(16)));
#if defined(__AVX512F__)
  typedef float Eight __attribute__((vector_size(32)));
  const Eight eight =
      fold(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7),
           __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15));
#elif defined(__AVX2__)
  const Vec eight = v;
#endif
#if defined(__AVX2__)
  const Four four = fold(__builtin_shufflevector(eight, eight, 0, 1, 2, 3),
                         __builtin_shufflevector(eight, eight, 4, 5, 6, 7));
#else
  const Four four = v;
#endif
  const Four two = fold(four, __builtin_shufflevector(four, four, 2, 3, 2, 3));
  const Four one = fold(two, __builtin_shufflevector(two, two, 1, 1, 1, 1));
  return one[0];
}

inline float Sum(Vec v) {
  return FoldLanes(v, [](auto a, auto b) { return a + b; });
}

inline float MaxLane(Vec v) {
  return FoldLanes(v, [](auto a, auto b) { return a > b ? a : b; });
}

inline Vec Sqrt(Vec v) {
#if defined(__AVX512F__)
  return _mm512_maskz_sqrt_ps(-1, v);  // unmasked, g++ 12 warns in its header
#elif defined(__AVX2__)
  return _mm256_sqrt_ps(v);
#else
  return _mm_sqrt_ps(v);
#endif
}

// What Exp and Exp2 add to a number, so that its nearest integer n is in the
// low bits; and 2^n from there, which is right where 2^n is a normal number.
// The lanes are unsigned, since others come along and may overflow.
constexpr float kShift = 12582912.0f;
inline Vec TwoToThe(Vec shifted) {
  return (Vec)(((UintVec)shifted << 23) + 0x3f800000);
}

// e^x to about one unit in the last place (the polynomial of Cephes' expf).
// Below -87.3 exactly 0, so that a masked score of minus infinity is no weight;
// above 88 the largest value, so that 1 / (1 + e^x) needs no case. NaN stays
// NaN.
inline Vec Exp(Vec x) {
  const Vec clamped = Max(Set(-87.3f), Min(Set(88.0f), x));
  const Vec shifted = clamped * 1.44269504088896341f + kShift;
  const Vec n = shifted - kShift;  // the nearest integer
  const Vec r = (clamped - n * 0.693359375f) - n * -2.12194440e-4f;
  Vec p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * r) * r + r + 1.0f;
  return x < -87.3f ? Vec{} : p * TwoToThe(shifted);
}

// erf(x) to 4e-7 of itself: a rational function of x below the x whose erf is
// one to half a unit in the last place, and exactly plus or minus one beyond
// (the coefficients of XLA's erf of f32). NaN stays NaN.
inline Vec Erf(Vec x) {
  constexpr float kOneFrom = 3.832506856900711f;
  const Vec s = x * x;
  Vec p = s * 0.00022905065861350646f + 0.0034082910107109506f;
  p = p * s + 0.050955695062380861f;
  p = p * s + 0.18520832239976145f;
  p = p * s + 1.128379143519084f;
  Vec q = s * -1.1791602954361697e-7f + 0.000023547966471313185f;
  q = q * s + 0.0010179625278914885f;
  q = q * s + 0.014070470171167667f;
  q = q * s + 0.11098505178285362f;
  q = q * s + 0.49746925110067538f;
  q = q * s + 1.0f;
  const Vec near = x * p / q;
  const Vec below = x < -kOneFrom ? Set(-1.0f) : near;
  return x > kOneFrom ? Set(1.0f) : below;
}

// 2^x to about one unit in the last place, for x up to 127 (the polynomial of
// Cephes' exp2f). Below -126 exactly 0, as Exp; NaN stays NaN.
inline Vec Exp2(Vec x) {
  const Vec shifted = x + kShift;
  const Vec r = x - (shifted - kShift);  // x less its nearest integer
  Vec p = r * 1.535336188319500e-4f + 1.339887440266574e-3f;
  p = p * r + 9.618437357674640e-3f;
  p = p * r + 5.550332471162809e-2f;
  p = p * r + 2.402264791363012e-1f;
  p = p * r + 6.931472028550421e-1f;
  p = p * r + 1.0f;
  return x < -126.0f ? Vec{} : p * TwoToThe(shifted);
}

}  // namespace TROUPE_SIMD
}  // namespace troupe

#endif  // TROUPE_OPS_CPU_SIMD_VEC_MATH_H_
