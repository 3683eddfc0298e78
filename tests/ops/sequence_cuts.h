// Ways to cut a sequence for ring attention.
#ifndef TROUPE_TESTS_OPS_SEQUENCE_CUTS_H_
#define TROUPE_TESTS_OPS_SEQUENCE_CUTS_H_

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "ops/attention_part.h"

namespace troupe {

struct Rows {
  SequenceRows at;
  int64_t count;
};
using Cut = std::vector<Rows>;  // each position is in one of them

// Piece r of `pieces` that are as equal as can be.
inline int64_t PieceBegin(int64_t length, int pieces, int r) {
  return length * r / pieces;
}

inline Cut PlainOrder(int64_t length, int ranks) {
  Cut cut;
  for (int r = 0; r < ranks; ++r) {
    const int64_t begin = PieceBegin(length, ranks, r);
    cut.push_back({.at = {.first = begin},
                   .count = PieceBegin(length, ranks, r + 1) - begin});
  }
  return cut;
}

// The r-th and the r-th last of 2 n pieces.
inline Cut ZigzagOrder(int64_t length, int ranks) {
  const auto begin = [&](int piece) {
    return PieceBegin(length, 2 * ranks, piece);
  };
  Cut cut;
  for (int r = 0; r < ranks; ++r) {
    const int last = 2 * ranks - 1 - r;
    const int64_t first_count = begin(r + 1) - begin(r);
    cut.push_back({.at = {.first = begin(r),
                          .first_count = first_count,
                          .second = begin(last)},
                   .count = first_count + begin(last + 1) - begin(last)});
  }
  return cut;
}

// Pieces of any size, empty ones among them, alone or two together.
inline Cut RandomCut(int64_t length, std::mt19937& generator) {
  std::uniform_int_distribution<int64_t> at(0, length);
  std::vector<int64_t> ends(generator() % 9);
  for (int64_t& end : ends) end = at(generator);
  ends.push_back(length);
  std::sort(ends.begin(), ends.end());
  std::vector<std::pair<int64_t, int64_t>> pieces;
  int64_t begin = 0;
  for (const int64_t end : ends) {
    pieces.emplace_back(begin, end);
    begin = end;
  }
  std::shuffle(pieces.begin(), pieces.end(), generator);
  Cut cut;
  for (size_t i = 0; i < pieces.size(); ++i) {
    auto first = pieces[i];
    if (i + 1 == pieces.size() || generator() % 2 == 0) {
      cut.push_back(
          {.at = {.first = first.first}, .count = first.second - first.first});
      continue;
    }
    auto second = pieces[++i];
    if (second < first) std::swap(first, second);
    const int64_t first_count = first.second - first.first;
    cut.push_back({.at = {.first = first.first,
                          .first_count = first_count,
                          .second = second.first},
                   .count = first_count + second.second - second.first});
  }
  return cut;
}

}  // namespace troupe

#endif  // TROUPE_TESTS_OPS_SEQUENCE_CUTS_H_
