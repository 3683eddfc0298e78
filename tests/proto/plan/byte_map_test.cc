#include "proto/plan/byte_map.h"

#include <array>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

std::string Text(const ByteMap<int>& map) {
  std::string text;
  for (const auto& [begin, piece] : map.pieces()) {
    absl::StrAppend(&text, begin, "-", piece.end, "=", piece.value, " ");
  }
  return text;
}

TEST(ByteMap, IsCutWhereAPartIsUsed) {
  ByteMap<int> map;
  map.Set({0, 100}, 1);
  map.Set({40, 60}, 2);
  EXPECT_EQ(Text(map), "0-40=1 40-60=2 60-100=1 ");
  for (auto& [begin, piece] : map.At({50, 70})) piece.value += 10;
  EXPECT_EQ(Text(map), "0-40=1 40-50=2 50-60=12 60-70=11 70-100=1 ");
  map.Set({40, 100}, 3);
  EXPECT_EQ(Text(map), "0-40=1 40-100=3 ");
}

TEST(ByteMap, WhatNothingWasSaidOfIsThereToo) {
  ByteMap<int> map;
  map.Set({20, 30}, 1);
  map.Set({40, 50}, 2);
  for (auto& [begin, piece] : map.At({10, 60})) piece.value += 5;
  EXPECT_EQ(Text(map), "10-20=5 20-30=6 30-40=5 40-50=7 50-60=5 ");
}

// Beside an array with a number for each byte.
TEST(ByteMap, IsAnArray) {
  constexpr int kBytes = 40;
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    ByteMap<int> map;
    std::array<int, kBytes> array = {};
    for (int change = 1; change <= 20; ++change) {
      int64_t begin = random() % kBytes;
      int64_t end = random() % kBytes;
      if (end < begin) std::swap(begin, end);
      ++end;
      const bool sets = random() % 2 == 0;
      if (sets) map.Set({begin, end}, change);
      int64_t next = begin;
      for (auto& [first, piece] : map.At({begin, end})) {
        ASSERT_EQ(first, next);
        if (!sets) piece.value += 100;
        next = piece.end;
      }
      ASSERT_EQ(next, end);
      for (int64_t byte = begin; byte < end; ++byte) {
        array[byte] = sets ? change : array[byte] + 100;
      }
      for (const auto& [first, piece] : map.pieces()) {
        for (int64_t byte = first; byte < piece.end; ++byte) {
          ASSERT_EQ(piece.value, array[byte]) << byte << " of " << Text(map);
        }
      }
    }
  }
}

}  // namespace
}  // namespace troupe
