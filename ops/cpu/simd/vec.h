// The vectors in which the loops of this folder are written. Each source here
// is compiled once for each instruction set, in a namespace of its own
// (TROUPE_SIMD: simd_baseline, simd_avx2, ...), and `table.h` is the only
// door: nothing with external linkage may be shared, or the linker could
// pick the AVX-512 copy of an inline function for a machine without it. So: no
// standard library templates, no absl.
//
// Vec is GCC's and clang's vector type: + - * / and comparisons act on lanes,
// a scalar operand is broadcast, and c ? a : b picks by lane.
//
// Loops over activations and parameters are templates on their type T: float,
// uint16_t for the bits of bf16, or Fp16. They compute on Vec in any: loads
// widen (exact), stores round once, to nearest and ties to even as ToBF16 and
// ToFP16 of proto/base do.
#ifndef TROUPE_OPS_CPU_SIMD_VEC_H_
#define TROUPE_OPS_CPU_SIMD_VEC_H_

#include <immintrin.h>
#include <stdint.h>

#include "ops/fp16.h"

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
typedef uint16_t HalfVec __attribute__((vector_size(kVecBytes / 2)));
typedef float UnalignedVec
    __attribute__((vector_size(kVecBytes), aligned(4), may_alias));
typedef uint32_t UnalignedUintVec
    __attribute__((vector_size(kVecBytes), aligned(4), may_alias));
typedef uint16_t UnalignedHalfVec
    __attribute__((vector_size(kVecBytes / 2), aligned(2), may_alias));

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

inline Vec Widen(HalfVec bits) {
#if defined(__AVX512F__)
  // g++ 12 would convert in halves.
  const UintVec wide = (UintVec)_mm512_maskz_cvtepu16_epi32(-1, (__m256i)bits);
#else
  const UintVec wide = __builtin_convertvector(bits, UintVec);
#endif
  return (Vec)(wide << 16);
}
// The nearest number of bf16, in the lower half of each lane.
inline UintVec Nearest(Vec v) {
  const UintVec bits = (UintVec)v;
  const UintVec nearest = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const UintVec nan = (bits >> 16) | 0x40;
  return v == v ? nearest : nan;
}
inline HalfVec Narrow(Vec v) {
#if defined(__AVX512BF16__)
  // The instruction takes denormals for zero, and is right otherwise.
  constexpr int kDenormal = 0x20;
  if (__builtin_expect(_mm512_fpclass_ps_mask((__m512)v, kDenormal) == 0, 1)) {
    return (HalfVec)_mm512_cvtneps_pbh((__m512)v);
  }
#endif
  return __builtin_convertvector(Nearest(v), HalfVec);
}
#if defined(__AVX512F__)
inline Vec WidenFp16(HalfVec bits) {
  // The plain ones make g++ 12 warn.
  return (Vec)_mm512_maskz_cvtph_ps(-1, (__m256i)bits);
}
inline HalfVec NarrowFp16(Vec v) {
  return (HalfVec)_mm512_maskz_cvtps_ph(-1, (__m512)v,
                                        _MM_FROUND_TO_NEAREST_INT);
}
#elif defined(__F16C__)
inline Vec WidenFp16(HalfVec bits) {
  return (Vec)_mm256_cvtph_ps((__m128i)bits);
}
inline HalfVec NarrowFp16(Vec v) {
  return (HalfVec)_mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT);
}
#else
// Step by step as proto/base/fp16.h.
inline Vec WidenFp16(HalfVec bits) {
  const UintVec wide = __builtin_convertvector(bits, UintVec);
  const UintVec sign = (wide & 0x8000) << 16;
  const UintVec magnitude = wide & 0x7fff;
  const UintVec finite = (UintVec)((Vec)(magnitude << 13) * 0x1p112f);
  const UintVec infinite = 0x7f800000 | magnitude << 13;
  const UintVec nan = infinite | 0x400000;
  return (Vec)(sign | (magnitude < 0x7c00   ? finite
                       : magnitude > 0x7c00 ? nan
                                            : infinite));
}
inline HalfVec NarrowFp16(Vec v) {
  const UintVec bits = (UintVec)v;
  const UintVec sign = (bits >> 16) & 0x8000;
  const UintVec magnitude = bits & 0x7fffffff;
  const UintVec nan = 0x7e00 | ((magnitude >> 13) & 0x3ff);
  const UintVec infinite = UintVec{} + 0x7c00;
  const UintVec denormal = (UintVec)((Vec)magnitude + 0.5f) - 0x3f000000;
  const UintVec normal =
      (magnitude - (112u << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  const UintVec rounded = magnitude > 0x7f800000    ? nan
                          : magnitude >= 0x47800000 ? infinite
                          : magnitude < 0x38800000  ? denormal
                                                    : normal;
  return __builtin_convertvector(sign | rounded, HalfVec);
}
#endif

inline Vec Load(const Fp16* p, Full = {}) {
  return WidenFp16(*reinterpret_cast<const UnalignedHalfVec*>(p));
}
inline Vec Load(const Fp16* p, Part part) {
  HalfVec bits{};
  __builtin_memcpy(&bits, p, part.count * sizeof(Fp16));
  return WidenFp16(bits);
}
inline void Store(Fp16* p, Vec v, Full = {}) {
  *reinterpret_cast<UnalignedHalfVec*>(p) = NarrowFp16(v);
}
inline void Store(Fp16* p, Vec v, Part part) {
  const HalfVec bits = NarrowFp16(v);
  __builtin_memcpy(p, &bits, part.count * sizeof(Fp16));
}

inline Vec Load(const uint16_t* p, Full = {}) {
  return Widen(*reinterpret_cast<const UnalignedHalfVec*>(p));
}
inline Vec Load(const uint16_t* p, Part part) {
  HalfVec bits{};
  __builtin_memcpy(&bits, p, part.count * sizeof(uint16_t));
  return Widen(bits);
}
inline void Store(uint16_t* p, Vec v, Full = {}) {
  *reinterpret_cast<UnalignedHalfVec*>(p) = Narrow(v);
}
inline void Store(uint16_t* p, Vec v, Part part) {
  const HalfVec bits = Narrow(v);
  __builtin_memcpy(p, &bits, part.count * sizeof(uint16_t));
}

// One element.
inline float LoadOne(const float* p) { return *p; }
inline float LoadOne(const uint16_t* p) { return Load(p, Part{1})[0]; }
inline float LoadOne(const Fp16* p) { return Load(p, Part{1})[0]; }

inline UintVec Load(const uint32_t* p) {
  return *reinterpret_cast<const UnalignedUintVec*>(p);
}
inline void Store(uint32_t* p, UintVec v) {
  *reinterpret_cast<UnalignedUintVec*>(p) = v;
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

}  // namespace TROUPE_SIMD
}  // namespace troupe

#endif  // TROUPE_OPS_CPU_SIMD_VEC_H_
