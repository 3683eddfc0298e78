// fp16: IEEE 754 binary16, stored as its 16 bits: 1 of sign, 5 of exponent, 10
// of fraction. Rounding an f32 to it moves it by at most 2^-11 of itself, but
// its range is narrow: 65504 is its largest number, 2^-14 its smallest normal
// one, and denormals are multiples of 2^-24.
#ifndef TROUPE_PROTO_BASE_FP16_H_
#define TROUPE_PROTO_BASE_FP16_H_

#include <bit>
#include <cstdint>

namespace troupe {

// Exact; a NaN is made quiet.
constexpr float FromFP16(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00) {
    const uint32_t quiet = magnitude > 0x7c00 ? 0x400000u : 0;
    return std::bit_cast<float>(sign | 0x7f800000u | quiet | magnitude << 13);
  }
  // As an f32's bits it is 2^112 times too small, denormals too.
  const float value = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
}

// To nearest, ties to even: from 65520 on is infinity, denormals are kept, NaN
// stays a NaN with its sign and upper payload, made quiet.
constexpr uint16_t ToFP16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t rounded = 0;
  if (magnitude > 0x7f800000u) {  // NaN
    rounded = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  } else if (magnitude >= 0x47800000u) {  // 65536
    rounded = 0x7c00u;
  } else if (magnitude < 0x38800000u) {  // 2^-14
    // The sum's last place is worth 2^-24: it rounds as this must.
    const float sum = std::bit_cast<float>(magnitude) + 0.5f;
    rounded = std::bit_cast<uint32_t>(sum) - std::bit_cast<uint32_t>(0.5f);
  } else {
    constexpr uint32_t kExponents = (127u - 15u) << 23;
    rounded =
        (magnitude - kExponents + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  }
  return static_cast<uint16_t>(sign | rounded);
}

}  // namespace troupe

#endif  // TROUPE_PROTO_BASE_FP16_H_
