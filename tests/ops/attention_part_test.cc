#include "ops/attention_part.h"

#include "gtest/gtest.h"
#include "tests/ops/sequence_cuts.h"

namespace troupe {
namespace {

std::vector<Cut> Cuts(int64_t length) {
  std::vector<Cut> cuts;
  for (const int ranks : {1, 2, 3, 4, 8}) {
    cuts.push_back(PlainOrder(length, ranks));
    cuts.push_back(ZigzagOrder(length, ranks));
  }
  std::mt19937 generator(7);
  for (int i = 0; i < 20; ++i) cuts.push_back(RandomCut(length, generator));
  return cuts;
}

TEST(AttentionPart, CutsHaveEachPositionOnce) {
  for (const int64_t length : {1, 16, 37}) {
    for (const Cut& cut : Cuts(length)) {
      std::vector<int> times(length);
      for (const Rows& rows : cut) {
        for (int64_t i = 0; i < rows.count; ++i) {
          ++times[PositionOf(rows.at, i)];
        }
      }
      EXPECT_EQ(times, std::vector<int>(length, 1));
    }
  }
}

// What a query sees, counted position by position.
void ExpectSeen(const AttentionPart& part, int64_t queries, int64_t keys) {
  for (int64_t query = 0; query < queries; ++query) {
    int64_t seen = 0;
    for (int64_t key = 0; key < keys; ++key) {
      const bool sees =
          PositionOf(part.keys, key) <= PositionOf(part.queries, query);
      seen += sees;
      EXPECT_EQ(FirstThatSees(part, queries, key) <= query, sees);
    }
    EXPECT_EQ(KeysSeen(part, keys, query), seen);
  }
}

TEST(AttentionPart, WhatQueriesSee) {
  for (const int64_t length : {1, 16, 37}) {
    const std::vector<Cut> cuts = Cuts(length);
    for (size_t i = 0; i < cuts.size(); ++i) {
      for (const Rows& queries : cuts[i]) {
        for (const Rows& keys : cuts[(i * 7 + 3) % cuts.size()]) {
          ExpectSeen({.length = length, .queries = queries.at, .keys = keys.at},
                     queries.count, keys.count);
        }
        for (const Rows& keys : cuts[i]) {
          ExpectSeen({.length = length, .queries = queries.at, .keys = keys.at},
                     queries.count, keys.count);
        }
      }
    }
  }
}

// Pairs of a query of one rank and a key that it sees.
int64_t Pairs(const Rows& queries, const Cut& keys, int64_t length) {
  int64_t pairs = 0;
  for (const Rows& some : keys) {
    for (int64_t query = 0; query < queries.count; ++query) {
      pairs +=
          KeysSeen({.length = length, .queries = queries.at, .keys = some.at},
                   some.count, query);
    }
  }
  return pairs;
}

TEST(AttentionPart, ZigzagOrderGivesAllRanksTheSameWork) {
  for (const int ranks : {2, 3, 4, 8}) {
    const int64_t length = 2 * ranks * 5;
    const Cut cut = ZigzagOrder(length, ranks);
    for (const Rows& rank : cut) {
      EXPECT_EQ(Pairs(rank, cut, length), length * (length + 1) / 2 / ranks);
    }
  }
}

}  // namespace
}  // namespace troupe
