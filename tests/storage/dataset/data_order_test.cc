#include "storage/dataset/data_order.h"

#include <algorithm>
#include <limits>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

// Whether index -> Permute is one to one onto [0, size).
bool IsBijection(const PermutationKey& key, uint64_t size) {
  std::vector<bool> hit(size, false);
  for (uint64_t i = 0; i < size; ++i) {
    const uint64_t p = Permute(key, size, i);
    if (p >= size || hit[p]) return false;
    hit[p] = true;
  }
  return true;
}

TEST(Permute, IsABijectionOfEverySize) {
  for (uint64_t size = 1; size <= 300; ++size) {
    for (const uint64_t seed : {uint64_t{0}, uint64_t{1} << 40}) {
      EXPECT_TRUE(IsBijection({.seed = seed, .epoch = size % 3}, size)) << size;
    }
  }
  for (const uint64_t size : {4095, 4096, 4097, 65537, 100'003}) {
    EXPECT_TRUE(IsBijection({.seed = 7, .epoch = 1}, size)) << size;
  }
}

TEST(Permute, HugeSizesStayInRangeAndDiffer) {
  const uint64_t size = (uint64_t{1} << 62) + 1;
  std::set<uint64_t> seen;
  for (uint64_t i = 0; i < 1000; ++i) {
    const uint64_t p = Permute({.seed = 1}, size, size - 1 - i);
    EXPECT_LT(p, size);
    seen.insert(p);
  }
  EXPECT_EQ(seen.size(), 1000u);
}

TEST(Permute, SeedsAndEpochsDiffer) {
  constexpr uint64_t kSize = 1000;
  const auto same = [](const PermutationKey& a, const PermutationKey& b) {
    int equal = 0;
    for (uint64_t i = 0; i < kSize; ++i) {
      equal += Permute(a, kSize, i) == Permute(b, kSize, i);
    }
    return equal;
  };
  // Two random permutations agree in one place on average.
  EXPECT_LT(same({1, 0}, {1, 1}), 10);
  EXPECT_LT(same({1, 0}, {2, 0}), 10);
  EXPECT_LT(same({1, 0}, {1, uint64_t{1} << 32}), 10);
  EXPECT_EQ(same({1, 5}, {1, 5}), 1000);
}

TEST(Permute, SpreadsEvenly) {
  // Where the first tenth of an epoch goes: chi-square over ten bins, 9 degrees
  // of freedom; 27.9 is passed by one in a thousand.
  constexpr uint64_t kSize = 20'000;
  int bins[10] = {};
  for (uint64_t i = 0; i < kSize / 10; ++i) {
    ++bins[Permute({.seed = 3}, kSize, i) * 10 / kSize];
  }
  double chi_square = 0;
  for (const int count : bins) {
    chi_square += (count - 200.0) * (count - 200.0) / 200.0;
  }
  EXPECT_LT(chi_square, 27.9);
}

TEST(Permute, NeverChangesBetweenVersions) {
  // A checkpoint's data cursor means these numbers: changing them breaks
  // resuming.
  std::vector<uint64_t> order;
  for (uint64_t i = 0; i < 8; ++i) {
    order.push_back(Permute({.seed = 1, .epoch = 0}, 1000, i));
  }
  EXPECT_EQ(order,
            (std::vector<uint64_t>{289, 34, 551, 847, 25, 716, 727, 95}));
}

TEST(DataOrder, EveryEpochSeesEveryWindowOnce) {
  const auto order =
      DataOrder::Create({.token_count = 1000, .sequence_length = 7, .seed = 1});
  ASSERT_TRUE(order.ok());
  EXPECT_EQ(order->training_windows(), 142u);  // (1000 - 1) / 7
  EXPECT_EQ(order->validation_windows(), 0u);
  std::vector<std::vector<uint64_t>> epochs(3);
  for (uint64_t n = 0; n < 3 * 142; ++n) {
    epochs[n / 142].push_back(order->TrainingToken(n));
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
  for (const auto& epoch : epochs) {
    const std::set<uint64_t> starts(epoch.begin(), epoch.end());
    EXPECT_EQ(starts.size(), 142u);
    EXPECT_EQ(*starts.rbegin(), 141u * 7);
    EXPECT_LE(*starts.rbegin() + 8, 1000u);
  }
}

TEST(DataOrder, NoTokenBothTrainsAndValidates) {
  for (uint64_t tokens = 40; tokens < 140; ++tokens) {
    for (const double fraction : {0.25, 0.3, 0.5}) {
      const auto order = DataOrder::Create({.token_count = tokens,
                                            .sequence_length = 8,
                                            .validation_fraction = fraction});
      ASSERT_TRUE(order.ok()) << order.status().ToString();
      uint64_t training_end = 0;
      for (uint64_t n = 0; n < order->training_windows(); ++n) {
        training_end = std::max(training_end, order->TrainingToken(n) + 9);
      }
      ASSERT_GT(order->validation_windows(), 0u);
      EXPECT_LE(training_end, order->ValidationToken(0));
      // In order, one after the other, within the file, none left out.
      const uint64_t last = order->validation_windows() - 1;
      EXPECT_EQ(order->ValidationToken(last),
                order->ValidationToken(0) + 8 * last);
      EXPECT_LE(order->ValidationToken(last) + 9, tokens);
      EXPECT_GT(order->ValidationToken(last) + 9 + 8, tokens);
    }
  }
}

TEST(DataOrder, TooShortAFileSaysSoWithTheNumbers) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_TRUE(Fails(
      DataOrder::Create({.token_count = 256, .sequence_length = 256}).status(),
      kInvalid, {"of 256 tokens 256 train", "needs 257", "use a longer text"}));
  EXPECT_TRUE(
      DataOrder::Create({.token_count = 257, .sequence_length = 256}).ok());
  EXPECT_TRUE(Fails(DataOrder::Create({.token_count = 1000,
                                       .sequence_length = 100,
                                       .validation_fraction = 0.05})
                        .status(),
                    kInvalid,
                    {"of 1000 tokens 50 validate", "needs 101",
                     "a larger validation_fraction, or 0"}));
  EXPECT_FALSE(
      DataOrder::Create({.token_count = 0, .sequence_length = 4}).ok());
  EXPECT_FALSE(
      DataOrder::Create({.token_count = 100, .sequence_length = 0}).ok());
  for (const double fraction :
       {-0.1, 1.0, 2.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_FALSE(DataOrder::Create({.token_count = 100,
                                    .sequence_length = 4,
                                    .validation_fraction = fraction})
                     .ok());
  }
}

}  // namespace
}  // namespace troupe
