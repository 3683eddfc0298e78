// Rounds against a simulation row by row: each row is carried to its expert and
// back, and lies where the functions say, under random and hostile counts.
#include "proto/base/expert_rounds.h"

#include <algorithm>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"

namespace troupe {
namespace {

// counts[rank][expert].
using Counts = std::vector<std::vector<int>>;

struct Case {
  std::string name;
  Counts counts;
  int64_t rows_max = 0;
};

std::vector<int32_t> OffsetsOf(const Counts& counts) {
  std::vector<int32_t> offsets;
  for (const std::vector<int>& of_rank : counts) {
    int32_t end = 0;
    offsets.push_back(end);
    for (const int count : of_rank) offsets.push_back(end += count);
  }
  return offsets;
}

// A row by where it comes from.
struct Row {
  int source = -1;
  int expert = -1;
  int64_t place = -1;  // among the source's rows
  bool operator==(const Row&) const = default;
};

// Of one rank, in the order of their numbers.
std::vector<Row> NumberedRows(const Counts& counts, int rank) {
  const int own = static_cast<int>(counts[0].size() / counts.size());
  std::vector<Row> rows;
  for (int source = 0; source < static_cast<int>(counts.size()); ++source) {
    int64_t place = 0;
    for (int expert = 0; expert < static_cast<int>(counts[source].size());
         ++expert) {
      for (int i = 0; i < counts[source][expert]; ++i, ++place) {
        if (expert / own == rank) rows.push_back({source, expert, place});
      }
    }
  }
  return rows;
}

// What lies in the rank's buffer in a round, by the spans.
std::vector<Row> RowsBySpans(const ExpertRounds& rounds, const Counts& counts,
                             int rank, int64_t round) {
  std::vector<Row> buffer;
  for (int source = 0; source < rounds.ranks(); ++source) {
    const RowSpan received = rounds.Received(rank, round, source);
    const RowSpan sent = rounds.Sent(source, round, rank);
    EXPECT_EQ(received.size(), sent.size());
    // Compact: nothing lies between sources.
    if (received.size() > 0) {
      EXPECT_EQ(received.begin, static_cast<int64_t>(buffer.size()));
    }
    for (int64_t place = sent.begin; place < sent.end; ++place) {
      int expert = 0;
      int64_t end = counts[source][0];
      while (place >= end) end += counts[source][++expert];
      buffer.push_back({source, expert, place});
    }
  }
  EXPECT_LE(static_cast<int64_t>(buffer.size()), rounds.rows_max());
  return buffer;
}

// Grouped by expert, then source, then place, row by row.
std::vector<Row> Grouped(std::vector<Row> rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::tie(a.expert, a.source, a.place) <
           std::tie(b.expert, b.source, b.place);
  });
  return rows;
}

void ExpectBlocks(const ExpertRounds& rounds, int rank, int64_t round,
                  const std::vector<Row>& buffer) {
  std::vector<Row> grouped(buffer.size());
  rounds.ForBlocks(
      rank, round,
      [&](int own_expert, int source, const RowSpan& received, int64_t begin) {
        for (int64_t i = 0; i < received.size(); ++i) {
          const Row& row = buffer.at(received.begin + i);
          EXPECT_EQ(row.source, source);
          EXPECT_EQ(row.expert, rank * rounds.experts_of_rank() + own_expert);
          grouped.at(begin + i) = row;
        }
      });
  EXPECT_EQ(grouped, Grouped(buffer));
}

void ExpectRounds(const Case& c) {
  SCOPED_TRACE(c.name);
  const int ranks = static_cast<int>(c.counts.size());
  const int experts = static_cast<int>(c.counts[0].size());
  const std::vector<int32_t> offsets = OffsetsOf(c.counts);
  const ExpertRounds rounds(offsets.data(), ranks, experts, c.rows_max);
  int64_t most = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<Row> numbered = NumberedRows(c.counts, rank);
    const auto count = static_cast<int64_t>(numbered.size());
    EXPECT_EQ(rounds.ReceivedByRank(rank), count);
    most = std::max(most, (count + c.rows_max - 1) / c.rows_max);
    // One round more than there are: it is empty.
    for (int64_t round = 0; round <= rounds.RoundCount(); ++round) {
      const int64_t begin = std::min(count, round * c.rows_max);
      const int64_t end = std::min(count, begin + c.rows_max);
      const std::vector<Row> buffer =
          RowsBySpans(rounds, c.counts, rank, round);
      ASSERT_EQ(buffer, std::vector<Row>(numbered.begin() + begin,
                                         numbered.begin() + end));
      ExpectBlocks(rounds, rank, round, buffer);
    }
  }
  EXPECT_EQ(rounds.RoundCount(), most);
}

TEST(ExpertRounds, HoldAnyRouting) {
  // Four ranks, eight experts.
  const Counts none(4, std::vector<int>(8, 0));
  Counts one_expert = none, one_rank = none, one_source = none, even = none;
  for (int rank = 0; rank < 4; ++rank) {
    one_expert[rank][5] = 24;
    one_rank[rank][6] = 11;
    one_rank[rank][7] = 13;
    for (int expert = 0; expert < 8; ++expert) even[rank][expert] = 3;
  }
  for (int expert = 0; expert < 8; ++expert) one_source[2][expert] = 3;
  // From less than a row of each source to all that there can be.
  for (const int64_t rows_max : {1, 7, 24, 30, 96}) {
    ExpectRounds({"no rows", none, rows_max});
    ExpectRounds({"one expert", one_expert, rows_max});
    ExpectRounds({"one rank", one_rank, rows_max});
    ExpectRounds({"one source", one_source, rows_max});
    ExpectRounds({"even", even, rows_max});
  }
}

TEST(ExpertRounds, HoldRandomRouting) {
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    const int ranks = 1 + static_cast<int>(random() % 5);
    const int own = 1 + static_cast<int>(random() % 4);
    Counts counts(ranks, std::vector<int>(ranks * own, 0));
    for (std::vector<int>& of_rank : counts) {
      for (int& count : of_rank) {
        // Many experts without rows, few with many.
        if (random() % 3 == 0) count = static_cast<int>(random() % 20);
      }
    }
    ExpectRounds({"case " + std::to_string(i), counts,
                  1 + static_cast<int64_t>(random() % 40)});
  }
}

TEST(ExpertRounds, FindAFaultyTable) {
  const auto faulty = [](const std::vector<int32_t>& offsets) {
    return ExpertRounds(offsets.data(), 2, 2, 8).FaultyRank(4);
  };
  EXPECT_EQ(faulty({0, 2, 4, 0, 0, 3}), -1);
  EXPECT_EQ(faulty({1, 2, 4, 0, 0, 3}), 0);   // does not begin at 0
  EXPECT_EQ(faulty({0, 2, 4, 0, 3, 2}), 1);   // falls
  EXPECT_EQ(faulty({0, 2, 4, 0, -1, 2}), 1);  // falls below 0
  EXPECT_EQ(faulty({0, 2, 4, 0, 3, 5}), 1);   // more rows than there are
}

}  // namespace
}  // namespace troupe
