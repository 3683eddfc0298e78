// The vectors in which the loops of this folder are written. Each source here
// is compiled once for each instruction set, in a namespace of its own
// (TROUPE_SIMD: simd_baseline, simd_avx2, simd_avx512), and `table.h` is the
// only door: nothing with external linkage may be shared, or the linker could
// pick the AVX-512 copy of an inline function for a machine without it. So: no
// standard library templates, no absl.
//
// Vec is GCC's and clang's vector type: + - * / and comparisons act on lanes,
// a scalar operand is broadcast, and c ? a : b picks by lane.
#ifndef TROUPE_OPS_CPU_SIMD_VEC_H_
#define TROUPE_OPS_CPU_SIMD_VEC_H_

#include <immintrin.h>
#include <stdint.h>

namespace troupe {
namespace TROUPE_SIMD {

#if defined(__AVX512F__)
constexpr int kVecBytes = 64;
#elif defined(__AVX2__)
constexpr int kVecBytes = 32;
#else
constexpr int kVecBytes = 16;
#endif
constexpr int kLanes = kVecBytes / 4;

typedef float Vec __attribute__((vector_size(kVecBytes)));
typedef int32_t IntVec __attribute__((vector_size(kVecBytes)));
typedef uint32_t UintVec __attribute__((vector_size(kVecBytes)));
typedef float UnalignedVec
    __attribute__((vector_size(kVecBytes), aligned(4), may_alias));
typedef uint32_t UnalignedUintVec
    __attribute__((vector_size(kVecBytes), aligned(4), may_alias));

// How much of a vector a load or store touches: all, or the first n lanes at
// the end of an array. The lanes beyond are zero, and compute like the others,
// so that an element's result does not depend on where a loop was cut.
struct Full {
  static constexpr int count = kLanes;
};
struct Part {
  int count;
};

inline Vec Set(float x) { return x - Vec{}; }
inline Vec Load(const float* p, Full = {}) {
  return *reinterpret_cast<const UnalignedVec*>(p);
}
inline Vec Load(const float* p, Part part) {
  Vec v{};
  __builtin_memcpy(&v, p, part.count * sizeof(float));
  return v;
}
inline void Store(float* p, Vec v, Full = {}) {
  *reinterpret_cast<UnalignedVec*>(p) = v;
}
inline void Store(float* p, Vec v, Part part) {
  __builtin_memcpy(p, &v, part.count * sizeof(float));
}
inline UintVec LoadUint(const uint32_t* p) {
  return *reinterpret_cast<const UnalignedUintVec*>(p);
}

// Bodies keep a product and the sum it goes into in one expression, never
// across an `if`: otherwise the compiler may fuse them for Full and not for
// Part, and results would depend on where a loop was cut after all.
//
// body(i, lanes) for i = 0, kLanes, ...; lanes is Full but for the last piece.
template <typename Body>
inline __attribute__((always_inline)) void ForEachVec(int64_t n, Body body) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) body(i, Full{});
  if (i < n) body(i, Part{static_cast<int>(n - i)});
}

// Where one is not a number, the result is b.
inline Vec Max(Vec a, Vec b) { return a > b ? a : b; }
inline Vec Min(Vec a, Vec b) { return a < b ? a : b; }

inline float Sum(Vec v) {
  float lanes[kLanes];
  Store(lanes, v);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

inline float MaxLane(Vec v) {
  float lanes[kLanes];
  Store(lanes, v);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) {
      if (lanes[i + half] > lanes[i]) lanes[i] = lanes[i + half];
    }
  }
  return lanes[0];
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

// e^x to about one unit in the last place (the polynomial of Cephes' expf).
// Below -87.3 exactly 0, so that a masked score of minus infinity is no weight;
// above 88 the largest value, so that 1 / (1 + e^x) needs no case. NaN stays
// NaN.
inline Vec Exp(Vec x) {
  const Vec clamped = Max(Set(-87.3f), Min(Set(88.0f), x));
  const Vec shifted = clamped * 1.44269504088896341f + 12582912.0f;
  const Vec n = shifted - 12582912.0f;  // rounded to the nearest integer
  const Vec r = (clamped - n * 0.693359375f) - n * -2.12194440e-4f;
  Vec p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * r) * r + r + 1.0f;
  const IntVec power = ((IntVec)shifted << 23) + 0x3f800000;  // 2^n
  return x < -87.3f ? Vec{} : p * (Vec)power;
}

}  // namespace TROUPE_SIMD
}  // namespace troupe

#endif  // TROUPE_OPS_CPU_SIMD_VEC_H_
