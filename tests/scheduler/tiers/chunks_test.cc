#include "scheduler/tiers/chunks.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "proto/base/philox.h"

namespace troupe {
namespace {

constexpr int kNever = -1;

std::vector<int> NextUses(const std::vector<ChunkUse>& uses) {
  std::vector<int> next(uses.size(), kNever);
  for (size_t i = 0; i < uses.size(); ++i) {
    for (size_t j = i + 1; j < uses.size() && next[i] == kNever; ++j) {
      if (uses[j].chunk == uses[i].chunk) next[i] = static_cast<int>(j);
    }
  }
  return next;
}

// Of chunks that are in use, or stay, at a moment.
int64_t BytesAt(int moment, const std::vector<ChunkUse>& uses,
                const std::vector<bool>& stays) {
  const std::vector<int> next = NextUses(uses);
  std::map<int, int64_t> there;
  for (size_t i = 0; i < uses.size(); ++i) {
    const int end = stays[i] ? uses[next[i]].end : uses[i].end;
    if (uses[i].begin <= moment && moment <= end) {
      there[uses[i].chunk] = uses[i].bytes;
    }
  }
  int64_t bytes = 0;
  for (const auto& [chunk, of_chunk] : there) bytes += of_chunk;
  return bytes;
}

// That come again, since they have not stayed.
int64_t BytesFetchedAgain(const std::vector<ChunkUse>& uses,
                          const std::vector<bool>& stays) {
  const std::vector<int> next = NextUses(uses);
  int64_t bytes = 0;
  for (size_t i = 0; i < uses.size(); ++i) {
    if (next[i] != kNever && !stays[i]) bytes += uses[i].bytes;
  }
  return bytes;
}

// The least, of all that could stay.
int64_t LeastFetchedAgain(const std::vector<ChunkUse>& uses, int64_t capacity) {
  const std::vector<int> next = NextUses(uses);
  const int count = static_cast<int>(uses.size());
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int choice = 0; choice < 1 << count; ++choice) {
    std::vector<bool> stays;
    bool possible = true;
    for (int i = 0; i < count; ++i) {
      stays.push_back((choice >> i & 1) != 0);
      possible &= !stays[i] || next[i] != kNever;
    }
    for (int i = 0; i < count && possible; ++i) {
      possible = BytesAt(uses[i].begin, uses, stays) <= capacity;
    }
    if (possible) least = std::min(least, BytesFetchedAgain(uses, stays));
  }
  return least;
}

class Dice {
 public:
  explicit Dice(uint64_t seed) : stream_{.seed = seed} {}
  int Below(int count) {
    return static_cast<int>(PhiloxUint32(stream_, thrown_++) % count);
  }

 private:
  const PhiloxStream stream_;
  uint64_t thrown_ = 0;
};

// Four chunks, of up to `largest` bytes, each used for one moment at a time.
std::vector<ChunkUse> Drawn(Dice& dice, int largest) {
  std::vector<int> bytes;
  for (int chunk = 0; chunk < 4; ++chunk) {
    bytes.push_back(1 + dice.Below(largest));
  }
  std::vector<ChunkUse> uses;
  for (int moment = 0; moment < 10; ++moment) {
    const int chunk = dice.Below(4);
    uses.push_back({.chunk = chunk,
                    .bytes = bytes[chunk],
                    .begin = moment,
                    .end = moment});
  }
  return uses;
}

TEST(Chunks, TheFarthestNextUseLeavesFirst) {
  // Forward over units 0 to 3 and back: room for three of them.
  std::vector<ChunkUse> uses;
  for (const int unit : {0, 1, 2, 3, 3, 2, 1, 0}) {
    const int moment = static_cast<int>(uses.size());
    uses.push_back({.chunk = unit, .bytes = 1, .begin = moment, .end = moment});
  }
  EXPECT_EQ(
      StayUntilNextUse(uses, 3),
      (std::vector<bool>{false, true, true, true, false, false, false, false}));
  EXPECT_EQ(StayUntilNextUse(uses, 4)[0], true);
  EXPECT_EQ(StayUntilNextUse(uses, 0), std::vector<bool>(8, false));
}

// Of two, one is used again at moment 4, the other at 5: which has changed and
// would have to go down first.
TEST(Chunks, WhatMovesTwiceIsHalfAsFar) {
  for (const int moves : {1, 2}) {
    std::vector<ChunkUse> uses;
    for (const auto& [chunk, moment] :
         {std::pair(0, 0), std::pair(1, 1), std::pair(2, 2), std::pair(0, 4),
          std::pair(1, 5)}) {
      uses.push_back({.chunk = chunk,
                      .bytes = 1,
                      .begin = moment,
                      .end = moment,
                      .moves = chunk == 1 ? moves : 1});
    }
    const std::vector<bool> stays = StayUntilNextUse(uses, 2);
    EXPECT_EQ(stays[0], moves == 1);
    EXPECT_EQ(stays[1], moves == 2);
  }
}

TEST(Chunks, OfOneSizeNoneCouldMoveLess) {
  Dice dice(1);
  for (int i = 0; i < 100; ++i) {
    const std::vector<ChunkUse> uses = Drawn(dice, /*largest=*/1);
    const int64_t capacity = 1 + dice.Below(4);
    EXPECT_EQ(BytesFetchedAgain(uses, StayUntilNextUse(uses, capacity)),
              LeastFetchedAgain(uses, capacity))
        << i;
  }
}

TEST(Chunks, OfSeveralSizesLittleLessCould) {
  Dice dice(2);
  int64_t sum = 0;
  int64_t least = 0;
  for (int i = 0; i < 100; ++i) {
    const std::vector<ChunkUse> uses = Drawn(dice, /*largest=*/3);
    const int64_t capacity = 3 + dice.Below(4);
    sum += BytesFetchedAgain(uses, StayUntilNextUse(uses, capacity));
    least += LeastFetchedAgain(uses, capacity);
  }
  EXPECT_LE(static_cast<double>(sum), 1.05 * static_cast<double>(least));
}

// However uses overlap, of one chunk or of several.
TEST(Chunks, WhatStaysHasRoom) {
  Dice dice(3);
  for (int i = 0; i < 200; ++i) {
    std::vector<ChunkUse> uses;
    for (int use = 0; use < 30; ++use) {
      const int chunk = dice.Below(8);
      const int begin = use + dice.Below(2);
      uses.push_back({.chunk = chunk,
                      .bytes = 1 + chunk % 3,
                      .begin = begin,
                      .end = begin + dice.Below(4)});
    }
    std::stable_sort(
        uses.begin(), uses.end(),
        [](const ChunkUse& a, const ChunkUse& b) { return a.begin < b.begin; });
    const int64_t capacity = 1 + dice.Below(20);
    const std::vector<bool> stays = StayUntilNextUse(uses, capacity);
    const std::vector<bool> nothing(uses.size(), false);
    for (int moment = 0; moment < 40; ++moment) {
      // But for what is in use anyway.
      ASSERT_LE(BytesAt(moment, uses, stays),
                std::max(capacity, BytesAt(moment, uses, nothing)))
          << i;
    }
  }
}

}  // namespace
}  // namespace troupe
