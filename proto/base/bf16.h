// bf16: the upper half of an f32, stored as its 16 bits. It has the range of an
// f32 and 8 bits of precision: rounding an f32 to it moves it by at most 2^-8
// of itself (denormals by half of the smallest denormal, 2^-134).
#ifndef TROUPE_PROTO_BASE_BF16_H_
#define TROUPE_PROTO_BASE_BF16_H_

#include <bit>
#include <cstdint>

namespace troupe {

// Exact.
constexpr float FromBF16(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

// To nearest, ties to even: beyond the largest is infinity, denormals are kept,
// NaN stays a NaN with its sign and upper payload, made quiet.
constexpr uint16_t ToBF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (value != value) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

}  // namespace troupe

#endif  // TROUPE_PROTO_BASE_BF16_H_
