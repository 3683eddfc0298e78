#include "ops/sample.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace troupe {
namespace {

const std::vector<float> kLogits = {0.0f, std::log(2.0f), std::log(4.0f),
                                    std::log(1.0f)};

std::vector<double> Shares(const SampleOptions& options) {
  std::vector<double> shares(kLogits.size());
  for (int i = 0; i < 8000; ++i) {
    SampleOptions at = options;
    at.uniform = (i + 0.5f) / 8000;
    shares[SampleToken(kLogits, at)] += 1.0 / 8000;
  }
  return shares;
}

void ExpectShares(const std::vector<double>& got,
                  const std::vector<double>& want) {
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-3);
}

TEST(SampleToken, FollowsTheSoftmax) {
  ExpectShares(Shares({}), {0.125, 0.25, 0.5, 0.125});
}

TEST(SampleToken, TemperatureSharpens) {
  ExpectShares(Shares({.temperature = 0.5f}),
               {1 / 22.0, 4 / 22.0, 16 / 22.0, 1 / 22.0});
}

TEST(SampleToken, OnlyAmongTheTopK) {
  ExpectShares(Shares({.top_k = 2}), {0, 1 / 3.0, 2 / 3.0, 0});
  ExpectShares(Shares({.top_k = 3}), {1 / 7.0, 2 / 7.0, 4 / 7.0, 0});
  ExpectShares(Shares({.top_k = 99}), {0.125, 0.25, 0.5, 0.125});
}

TEST(SampleToken, OfBf16Logits) {
  // 1 and 2 differ in their last bit; 3 is as large as 2, which comes first.
  const std::vector<uint16_t> bits = {0x3f80, 0x4000, 0x4001, 0x4001};
  EXPECT_EQ(SampleToken(bits, {.temperature = 0}), 2);
  EXPECT_EQ(SampleToken(bits, {.top_k = 2, .uniform = 0.49f}), 2);
  EXPECT_EQ(SampleToken(bits, {.top_k = 2, .uniform = 0.51f}), 3);
}

TEST(SampleToken, TheMostLikely) {
  EXPECT_EQ(SampleToken(kLogits, {.temperature = 0, .uniform = 0.99f}), 2);
  EXPECT_EQ(SampleToken(kLogits, {.top_k = 1, .uniform = 0.0f}), 2);
}

}  // namespace
}  // namespace troupe
