// Transposes a square of vectors: within groups of 16 bytes by unpacking, which
// is what processors shuffle fastest, then the groups as wholes.
#ifndef TROUPE_OPS_CPU_SIMD_TRANSPOSE_H_
#define TROUPE_OPS_CPU_SIMD_TRANSPOSE_H_

#include "ops/cpu/simd/vec.h"

namespace troupe {
namespace TROUPE_SIMD {

// In each group of four lanes: a0 b0 a1 b1, and a2 b2 a3 b3; the same of pairs
// of lanes, a0 a1 b0 b1 and a2 a3 b2 b3. Of groups: the even ones of a, then of
// b, and the odd ones.
#if defined(__AVX512F__)
inline Vec UnpackLow(Vec a, Vec b) {
  return _mm512_maskz_unpacklo_ps(-1, a, b);
}
inline Vec UnpackHigh(Vec a, Vec b) {
  return _mm512_maskz_unpackhi_ps(-1, a, b);
}
inline Vec UnpackLowPairs(Vec a, Vec b) {
  return (Vec)_mm512_maskz_unpacklo_pd(-1, (__m512d)a, (__m512d)b);
}
inline Vec UnpackHighPairs(Vec a, Vec b) {
  return (Vec)_mm512_maskz_unpackhi_pd(-1, (__m512d)a, (__m512d)b);
}
inline Vec EvenGroups(Vec a, Vec b) {
  return _mm512_maskz_shuffle_f32x4(-1, a, b, 0x88);
}
inline Vec OddGroups(Vec a, Vec b) {
  return _mm512_maskz_shuffle_f32x4(-1, a, b, 0xdd);
}
#elif defined(__AVX2__)
inline Vec UnpackLow(Vec a, Vec b) { return _mm256_unpacklo_ps(a, b); }
inline Vec UnpackHigh(Vec a, Vec b) { return _mm256_unpackhi_ps(a, b); }
inline Vec UnpackLowPairs(Vec a, Vec b) {
  return (Vec)_mm256_unpacklo_pd((__m256d)a, (__m256d)b);
}
inline Vec UnpackHighPairs(Vec a, Vec b) {
  return (Vec)_mm256_unpackhi_pd((__m256d)a, (__m256d)b);
}
inline Vec EvenGroups(Vec a, Vec b) {
  return _mm256_permute2f128_ps(a, b, 0x20);
}
inline Vec OddGroups(Vec a, Vec b) {
  return _mm256_permute2f128_ps(a, b, 0x31);
}
#else
inline Vec UnpackLow(Vec a, Vec b) { return _mm_unpacklo_ps(a, b); }
inline Vec UnpackHigh(Vec a, Vec b) { return _mm_unpackhi_ps(a, b); }
inline Vec UnpackLowPairs(Vec a, Vec b) {
  return (Vec)_mm_unpacklo_pd((__m128d)a, (__m128d)b);
}
inline Vec UnpackHighPairs(Vec a, Vec b) {
  return (Vec)_mm_unpackhi_pd((__m128d)a, (__m128d)b);
}
#endif

// v[0], v[stride], ...: of n vectors of n groups each, the transpose.
inline __attribute__((always_inline)) void TransposeGroups(Vec* v, int stride) {
#if defined(__AVX512F__)
  const Vec even[2] = {EvenGroups(v[0], v[stride]),
                       EvenGroups(v[2 * stride], v[3 * stride])};
  const Vec odd[2] = {OddGroups(v[0], v[stride]),
                      OddGroups(v[2 * stride], v[3 * stride])};
  v[0] = EvenGroups(even[0], even[1]);
  v[stride] = EvenGroups(odd[0], odd[1]);
  v[2 * stride] = OddGroups(even[0], even[1]);
  v[3 * stride] = OddGroups(odd[0], odd[1]);
#elif defined(__AVX2__)
  const Vec even = EvenGroups(v[0], v[stride]);
  v[stride] = OddGroups(v[0], v[stride]);
  v[0] = even;
#endif
}

// Row i of the kLanes rows becomes column i.
inline __attribute__((always_inline)) void Transpose(Vec* square) {
  constexpr int kGroup = 4;  // lanes
#pragma GCC unroll 4
  for (int i = 0; i < kLanes; i += kGroup) {
    Vec* const v = square + i;
    const Vec low[2] = {UnpackLow(v[0], v[1]), UnpackLow(v[2], v[3])};
    const Vec high[2] = {UnpackHigh(v[0], v[1]), UnpackHigh(v[2], v[3])};
    v[0] = UnpackLowPairs(low[0], low[1]);
    v[1] = UnpackHighPairs(low[0], low[1]);
    v[2] = UnpackLowPairs(high[0], high[1]);
    v[3] = UnpackHighPairs(high[0], high[1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < kGroup; ++i) TransposeGroups(square + i, kGroup);
}

}  // namespace TROUPE_SIMD
}  // namespace troupe

#endif  // TROUPE_OPS_CPU_SIMD_TRANSPOSE_H_
