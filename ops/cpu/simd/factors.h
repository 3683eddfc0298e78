// Products whose factors are f32, or pairs of bf16 that are multiplied and
// added at once, by an instruction of AVX512_BF16. Sums are f32.
#ifndef TROUPE_OPS_CPU_SIMD_FACTORS_H_
#define TROUPE_OPS_CPU_SIMD_FACTORS_H_

#include "ops/cpu/simd/vec.h"

namespace troupe {
namespace TROUPE_SIMD {

inline void StoreFactor(float* p, Vec v) { Store(p, v); }

// sum + row * a.
inline Vec AddProduct(Vec sum, Vec row, float a) { return sum + row * a; }

#if defined(__AVX512BF16__)
// bf16 factors, rounded as vec.h's stores but that denormals become zero: one
// in each lane, and pairs of the same lane of two vectors.
inline void StoreFactor(uint16_t* p, Vec v) {
  *reinterpret_cast<UnalignedHalfVec*>(p) =
      (HalfVec)_mm512_cvtneps_pbh((__m512)v);
}
inline UintVec FactorPairs(Vec low, Vec high) {
  const __m512i halves =
      (__m512i)_mm512_cvtne2ps_pbh((__m512)high, (__m512)low);
  const UintVec order = {0x100000, 0x110001, 0x120002, 0x130003,
                         0x140004, 0x150005, 0x160006, 0x170007,
                         0x180008, 0x190009, 0x1a000a, 0x1b000b,
                         0x1c000c, 0x1d000d, 0x1e000e, 0x1f000f};
  return (UintVec)_mm512_permutexvar_epi16((__m512i)order, halves);
}

// Where each lane holds a pair of bf16, the first in its lower half: the sum of
// both products is added.
inline Vec AddProduct(Vec sum, UintVec row, uint32_t a) {
  const UintVec pair = a - UintVec{};
  return (Vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)row, (__m512bh)pair);
}
#endif

}  // namespace TROUPE_SIMD
}  // namespace troupe

#endif  // TROUPE_OPS_CPU_SIMD_FACTORS_H_
