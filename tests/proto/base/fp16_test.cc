#include "proto/base/fp16.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace troupe {
namespace {

using Limits = std::numeric_limits<float>;

// From what the bits are said to mean.
double ValueOf(uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 10) & 0x1f;
  const int fraction = static_cast<int>(bits & 0x3ff);
  const double size = exponent == 0
                          ? std::ldexp(fraction, -24)
                          : std::ldexp(fraction + 0x400, exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

TEST(FP16, EveryNumberIsWhatItsBitsSayAndComesBack) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const float value = FromFP16(static_cast<uint16_t>(bits));
    if ((bits & 0x7fff) > 0x7c00) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_EQ(ToFP16(value), bits | 0x200);
    } else {
      if ((bits & 0x7fff) < 0x7c00) {
        EXPECT_EQ(value, ValueOf(bits));
      } else {
        EXPECT_TRUE(std::isinf(value));
      }
      EXPECT_EQ(std::signbit(value), bits > 0x7fff);
      EXPECT_EQ(ToFP16(value), bits);
    }
  }
}

// The neighbours of each finite positive number: what lies nearer to one goes
// there, the middle to the even one. Beyond the largest is infinity, as if it
// were 65536.
TEST(FP16, RoundsToNearestAndTiesToEven) {
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const double low = ValueOf(bits), high = ValueOf(bits + 1);
    const auto middle = static_cast<float>((low + high) / 2);
    const auto rounded = [&](float value) {
      EXPECT_EQ(ToFP16(-value), ToFP16(value) | 0x8000) << low;
      return ToFP16(value);
    };
    EXPECT_EQ(rounded(std::nextafter(middle, 0.0f)), bits);
    EXPECT_EQ(rounded(middle), bits + (bits & 1));
    EXPECT_EQ(rounded(std::nextafter(middle, Limits::infinity())), bits + 1);
  }
}

TEST(FP16, EndsOfTheRange) {
  EXPECT_EQ(FromFP16(0x7bff), 65504.0f);
  EXPECT_EQ(ToFP16(Limits::infinity()), 0x7c00);
  EXPECT_EQ(ToFP16(Limits::max()), 0x7c00);
  EXPECT_EQ(ToFP16(Limits::denorm_min()), 0);
  EXPECT_EQ(ToFP16(-0.0f), 0x8000);
  EXPECT_EQ(FromFP16(1), std::ldexp(1.0f, -24));  // the smallest denormal
}

}  // namespace
}  // namespace troupe
