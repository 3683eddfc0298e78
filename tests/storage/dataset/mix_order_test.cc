#include "storage/dataset/mix_order.h"

#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

MixOrder Mix(const std::vector<double>& weights) {
  return MixOrder::Create(weights).value();
}

// At each prefix of two periods and a half: the error of every source, and that
// its samples are numbered one after the other.
void SharesAreExact(const std::vector<double>& weights) {
  const MixOrder mix = Mix(weights);
  double sum = 0;
  for (const double weight : weights) sum += weight;
  std::vector<uint64_t> had(weights.size(), 0);
  const uint64_t samples = std::min<uint64_t>(5 * mix.period() / 2, 100'000);
  for (uint64_t n = 0; n < samples; ++n) {
    const MixOrder::Place place = mix.PlaceOf(n);
    ASSERT_EQ(place.index, had[place.source]);
    ++had[place.source];
    for (size_t s = 0; s < weights.size(); ++s) {
      const double want = static_cast<double>(n + 1) * weights[s] / sum;
      ASSERT_LT(std::abs(static_cast<double>(had[s]) - want), 1)
          << "source " << s << " of " << weights.size() << " at " << n + 1;
    }
  }
}

TEST(MixOrder, SharesAreExactAtEveryPrefix) {
  for (const std::vector<double>& weights :
       std::vector<std::vector<double>>{{1},
                                        {0.7, 0.3},
                                        {1, 1, 1},
                                        {2, 1},
                                        {0.5, 0.25, 0.125, 0.125},
                                        {0.123456, 0.876544},
                                        {1e-3, 1, 1e-3, 1e-3},
                                        {3, 5, 7, 11, 13}}) {
    SharesAreExact(weights);
  }
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    std::vector<double> weights(2 + random() % 9);
    for (double& weight : weights) weight = 1 + random() % 30;
    SharesAreExact(weights);
  }
}

TEST(MixOrder, PeriodsAreAsShortAsTheyCanBe) {
  EXPECT_EQ(Mix({0.7, 0.3}).period(), 10u);
  EXPECT_EQ(Mix({14, 6}).period(), 10u);
  EXPECT_EQ(Mix({0.1, 0.2, 0.7}).shares(), (std::vector<uint64_t>{1, 2, 7}));
  EXPECT_EQ(Mix({1, 2}).period(), 3u);
  EXPECT_EQ(Mix({42}).period(), 1u);
  // No fraction of small numbers.
  const MixOrder mix = Mix({std::sqrt(2.0), 1});
  EXPECT_LE(mix.period(), 1'000'000u);
  const double share =
      static_cast<double>(mix.shares()[0]) / static_cast<double>(mix.period());
  EXPECT_NEAR(share, std::sqrt(2.0) / (1 + std::sqrt(2.0)), 1e-6);
}

TEST(MixOrder, SamplesAreFoundFarOut) {
  const MixOrder mix = Mix({0.7, 0.3});
  constexpr uint64_t kFar = uint64_t{10} << 50;
  for (uint64_t i = 0; i < 10; ++i) {
    const MixOrder::Place here = mix.PlaceOf(i);
    const MixOrder::Place there = mix.PlaceOf(kFar + i);
    EXPECT_EQ(there.source, here.source);
    EXPECT_EQ(there.index,
              here.index + (here.source == 0 ? kFar / 10 * 7 : kFar / 10 * 3));
  }
}

TEST(MixOrder, KnowsHowLongSourcesLast) {
  const MixOrder mix = Mix({0.7, 0.3});
  for (uint64_t a = 0; a < 30; ++a) {
    for (uint64_t b = 0; b < 15; ++b) {
      const uint64_t available[] = {a, b};
      uint64_t want = 0;
      while (mix.PlaceOf(want).index < available[mix.PlaceOf(want).source]) {
        ++want;
      }
      EXPECT_EQ(mix.LongestWithin(available), want) << a << " " << b;
    }
  }
}

TEST(MixOrder, WeightsAreNumbersAboveZero) {
  for (const std::vector<double>& weights : std::vector<std::vector<double>>{
           {}, {1, 0}, {-1, 2}, {1, NAN}, {1, INFINITY}, {1, 1e-9}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(MixOrder::Create(weights).status()))
        << testing::PrintToString(weights);
  }
}

}  // namespace
}  // namespace troupe
