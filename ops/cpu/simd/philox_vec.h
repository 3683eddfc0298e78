// Philox4x32-10 (proto/base/philox.h) for many blocks at once, and the dropout
// mask that follows from it. Bit for bit the numbers of PhiloxUint32.
#ifndef TROUPE_OPS_CPU_SIMD_PHILOX_VEC_H_
#define TROUPE_OPS_CPU_SIMD_PHILOX_VEC_H_

#include <stdint.h>

#include "ops/cpu/simd/table.h"
#include "ops/cpu/simd/vec.h"

namespace troupe {
namespace TROUPE_SIMD {

// One block in each 64-bit lane, its word in the lane's low half.
constexpr int kBlocks = kVecBytes / 8;
typedef uint64_t WideVec __attribute__((vector_size(kVecBytes)));

// Products of the low halves.
inline WideVec MultiplyLow(WideVec a, uint32_t b) {
#if defined(__AVX512F__)
  return (WideVec)_mm512_maskz_mul_epu32(-1, (__m512i)a, _mm512_set1_epi64(b));
#elif defined(__AVX2__)
  return (WideVec)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x(b));
#else
  return (WideVec)_mm_mul_epu32((__m128i)a, _mm_set1_epi64x(b));
#endif
}

// Numbers 4 * block ... 4 * (block + kBlocks) - 1 of the stream. The upper
// halves of counter words carry rubbish, which no multiplication reads.
inline void PhiloxBlocks(const RawPhilox& philox, uint64_t block,
                         uint32_t* out) {
  WideVec index;
  for (int i = 0; i < kBlocks; ++i) index[i] = block + i;
  WideVec c0 = index;
  WideVec c1 = index >> 32;
  WideVec c2 = WideVec{} + philox.counter2;
  WideVec c3 = WideVec{} + philox.counter3;
  uint32_t key0 = philox.key0;
  uint32_t key1 = philox.key1;
  for (int round = 0; round < 10; ++round) {
    const WideVec p0 = MultiplyLow(c0, 0xd2511f53u);
    const WideVec p1 = MultiplyLow(c2, 0xcd9e8d57u);
    c0 = (p1 >> 32) ^ c1 ^ uint64_t { key0 };
    c1 = p1;
    c2 = (p0 >> 32) ^ c3 ^ uint64_t { key1 };
    c3 = p0;
    key0 += 0x9e3779b9u;
    key1 += 0xbb67ae85u;
  }
  const uint64_t low = 0xffffffffu;
  const WideVec first = (c0 & low) | (c1 << 32);
  const WideVec second = (c2 & low) | (c3 << 32);
#if defined(__AVX512F__)
  const WideVec low_blocks =
      __builtin_shufflevector(first, second, 0, 8, 1, 9, 2, 10, 3, 11);
  const WideVec high_blocks =
      __builtin_shufflevector(first, second, 4, 12, 5, 13, 6, 14, 7, 15);
#elif defined(__AVX2__)
  const WideVec low_blocks = __builtin_shufflevector(first, second, 0, 4, 1, 5);
  const WideVec high_blocks =
      __builtin_shufflevector(first, second, 2, 6, 3, 7);
#else
  const WideVec low_blocks = __builtin_shufflevector(first, second, 0, 2);
  const WideVec high_blocks = __builtin_shufflevector(first, second, 1, 3);
#endif
  __builtin_memcpy(out, &low_blocks, kVecBytes);
  __builtin_memcpy(out + kLanes, &high_blocks, kVecBytes);
}

// The most numbers asked for at once, and the room that they need: up to three
// numbers before the first, and whole vectors of blocks.
constexpr int kPhiloxRun = 256;
constexpr int kPhiloxRoom = kPhiloxRun + 4 + 4 * kBlocks;

// Numbers [first, first + n) of the stream, n <= kPhiloxRun, somewhere in
// `room`; whole vectors may be loaded from there to the last number.
inline const uint32_t* PhiloxRun(const RawPhilox& philox, uint64_t first, int n,
                                 uint32_t* room) {
  const int skip = static_cast<int>(first % 4);
  for (int at = 0; at < skip + n; at += 4 * kBlocks) {
    PhiloxBlocks(philox, first / 4 + at / 4, room + at);
  }
  return room + skip;
}

// What to multiply with: keep_scale where the element stays, else 0.
inline Vec DropoutFactor(const RawDropout& dropout, const uint32_t* bits) {
  const IntVec kept =
      (IntVec)(Load(bits) >> 8) >= static_cast<int32_t>(dropout.threshold);
  return kept ? Set(dropout.keep_scale) : Vec{};
}

}  // namespace TROUPE_SIMD
}  // namespace troupe

#endif  // TROUPE_OPS_CPU_SIMD_PHILOX_VEC_H_
