#include "proto/base/bf16.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace troupe {
namespace {

using Limits = std::numeric_limits<float>;

TEST(BF16, EveryNumberComesBack) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const float value = FromBF16(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_EQ(ToBF16(value), bits | 0x40);
    } else {
      EXPECT_EQ(ToBF16(value), bits);
    }
  }
}

// The neighbours of each finite positive number: what lies nearer to one goes
// there, the middle to the even one.
TEST(BF16, RoundsToNearestAndTiesToEven) {
  for (uint32_t bits = 0; bits < 0x7f80; ++bits) {
    const float low = FromBF16(static_cast<uint16_t>(bits));
    const uint32_t base = bits << 16;
    const auto rounded = [&](uint32_t lower) {
      const float value = std::bit_cast<float>(base | lower);
      EXPECT_EQ(ToBF16(-value), ToBF16(value) | 0x8000) << low;
      return ToBF16(value);
    };
    EXPECT_EQ(rounded(0x0001), bits);
    EXPECT_EQ(rounded(0x7fff), bits);
    EXPECT_EQ(rounded(0x8000), bits + (bits & 1));
    EXPECT_EQ(rounded(0x8001), bits + 1);
    EXPECT_EQ(rounded(0xffff), bits + 1);
  }
}

TEST(BF16, EndsOfTheRange) {
  EXPECT_EQ(ToBF16(Limits::infinity()), 0x7f80);
  EXPECT_EQ(ToBF16(Limits::max()), 0x7f80);  // beyond the largest bf16
  EXPECT_EQ(ToBF16(Limits::denorm_min()), 0);
  EXPECT_EQ(ToBF16(-0.0f), 0x8000);
  EXPECT_EQ(FromBF16(1), std::ldexp(1.0f, -133));  // the smallest denormal
  EXPECT_EQ(ToBF16(std::ldexp(1.5f, -134)), 1);
}

TEST(BF16, NotANumberStaysOne) {
  // Its payload is in the lower half only: cutting it off would be infinity.
  const float nan = std::bit_cast<float>(uint32_t{0xff800001});
  EXPECT_EQ(ToBF16(nan), 0xffc0);
  EXPECT_TRUE(std::isnan(FromBF16(ToBF16(nan))));
}

}  // namespace
}  // namespace troupe
