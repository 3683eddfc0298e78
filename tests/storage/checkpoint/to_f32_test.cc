#include "storage/checkpoint/to_f32.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace troupe {
namespace {

template <typename T>
float One(StoredDType dtype, T stored) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &stored, sizeof(T));
  float out = 0;
  EXPECT_TRUE(ToF32(dtype, bytes, 1, &out).ok());
  return out;
}

TEST(ToF32, HalfPrecision) {
  const auto half = [](uint16_t bits) { return One(StoredDType::kF16, bits); };
  EXPECT_EQ(half(0x3c00), 1.0f);
  EXPECT_EQ(half(0xc000), -2.0f);
  EXPECT_EQ(half(0x7bff), 65504.0f);               // the largest
  EXPECT_EQ(half(0x0400), std::ldexp(1.0f, -14));  // the smallest normal
  EXPECT_EQ(half(0x0001), std::ldexp(1.0f, -24));  // the smallest
  EXPECT_EQ(half(0x8003), -3 * std::ldexp(1.0f, -24));
  EXPECT_EQ(half(0x3555), 1365.0f / 4096);  // nearly a third
  EXPECT_TRUE(std::signbit(half(0x8000)));
  EXPECT_EQ(half(0x7c00), std::numeric_limits<float>::infinity());
  EXPECT_EQ(half(0xfc00), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(half(0x7e00)));
}

TEST(ToF32, TheOthers) {
  EXPECT_EQ(One<uint16_t>(StoredDType::kBF16, 0x3fc0), 1.5f);
  EXPECT_EQ(One<float>(StoredDType::kF32, 0.1f), 0.1f);
  EXPECT_EQ(One<double>(StoredDType::kF64, 0.1), 0.1f);
  float out;
  EXPECT_FALSE(ToF32(StoredDType::kI32, "\0\0\0", 1, &out).ok());
  EXPECT_FALSE(ConvertsToF32(StoredDType::kI32));
}

TEST(ToF32, AtAnyAlignment) {
  std::vector<char> bytes(1 + 3 * sizeof(float));
  const float values[] = {1.5f, -2.25f, 1e-30f};
  std::memcpy(bytes.data() + 1, values, sizeof(values));
  float out[3];
  ASSERT_TRUE(ToF32(StoredDType::kF32, bytes.data() + 1, 3, out).ok());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(out[i], values[i]);
}

TEST(FromF32, RoundsToTheNearestEven) {
  const float values[] = {1.0f, 1.00390625f, 1.01171875f, -3.1415927f};
  uint16_t bits[4];
  ASSERT_TRUE(
      FromF32(StoredDType::kBF16, values, 4, reinterpret_cast<char*>(bits))
          .ok());
  EXPECT_EQ(bits[0], 0x3f80);
  EXPECT_EQ(bits[1], 0x3f80);  // a tie, down to even
  EXPECT_EQ(bits[2], 0x3f82);  // a tie, up to even
  EXPECT_EQ(bits[3], 0xc049);
  float same[4];
  ASSERT_TRUE(
      FromF32(StoredDType::kF32, values, 4, reinterpret_cast<char*>(same))
          .ok());
  EXPECT_EQ(std::memcmp(same, values, sizeof(values)), 0);
  EXPECT_FALSE(
      FromF32(StoredDType::kF16, values, 1, reinterpret_cast<char*>(bits))
          .ok());
}

}  // namespace
}  // namespace troupe
