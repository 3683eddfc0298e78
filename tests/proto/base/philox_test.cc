#include "proto/base/philox.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

using Counter = std::array<uint32_t, 4>;

// The known answers that Random123 publishes (kat_vectors, philox4x32 10).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t f = 0xffffffff;
  EXPECT_EQ(Philox4x32({f, f, f, f}, {f, f}),
            (Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                       {0xa4093822, 0x299f31d0}),
            (Counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, StreamsDiffer) {
  const PhiloxStream a{
      .seed = 1, .purpose = RandomPurpose::kDropout, .site = 3};
  PhiloxStream b = a;
  b.step = 1;
  PhiloxStream c = a;
  c.purpose = RandomPurpose::kDataOrder;
  EXPECT_NE(PhiloxUint32(a, 7), PhiloxUint32(b, 7));
  EXPECT_NE(PhiloxUint32(a, 7), PhiloxUint32(c, 7));
  EXPECT_EQ(PhiloxUint32(a, 7), PhiloxBlock(a, 1)[3]);
}

TEST(Philox, UniformIsBelowOneAndCentred) {
  const PhiloxStream stream{.seed = 9};
  double sum = 0;
  for (int i = 0; i < 40000; ++i) {
    const float u = PhiloxUniform(PhiloxUint32(stream, i));
    ASSERT_GE(u, 0.0f);
    ASSERT_LT(u, 1.0f);
    sum += u;
  }
  EXPECT_NEAR(sum / 40000, 0.5, 0.01);
  EXPECT_LT(PhiloxUniform(0xffffffff), 1.0f);
}

}  // namespace
}  // namespace troupe
