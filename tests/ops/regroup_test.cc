#include "ops/regroup.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "tests/ops/devices.h"

namespace troupe {
namespace {

class RegroupTest : public OpTest {
 protected:
  // [ranks][experts].
  using Counts = std::vector<std::vector<int>>;

  static Values OffsetsOf(const Counts& counts) {
    Values offsets;
    for (const std::vector<int>& of_rank : counts) {
      double end = 0;
      offsets.push_back(end);
      for (const int count : of_rank) offsets.push_back(end += count);
    }
    return offsets;
  }

  // By grouped row, where it was received; and the offsets of experts. Naively:
  // all rows that the rank receives in all rounds are listed and cut.
  struct Expected {
    std::vector<int64_t> received;
    Values own_offsets;
  };
  static Expected ExpectedOf(const Counts& counts, int rank, int64_t round,
                             int64_t rows_max) {
    const int own = static_cast<int>(counts[0].size() / counts.size());
    std::vector<int> experts;
    for (const std::vector<int>& of_source : counts) {
      for (int i = 0; i < own; ++i) {
        experts.insert(experts.end(), of_source[rank * own + i], i);
      }
    }
    const auto count = static_cast<int64_t>(experts.size());
    const int64_t begin = std::min(count, round * rows_max);
    const int64_t end = std::min(count, begin + rows_max);
    Expected expected = {.own_offsets = {0}};
    for (int expert = 0; expert < own; ++expert) {
      for (int64_t i = begin; i < end; ++i) {
        if (experts[i] == expert) expected.received.push_back(i - begin);
      }
      expected.own_offsets.push_back(
          static_cast<double>(expected.received.size()));
    }
    return expected;
  }

  void Expect(const Counts& counts, int rank, int64_t round, int64_t rows_max,
              int64_t columns, DType dtype) {
    const auto ranks = static_cast<int64_t>(counts.size());
    const auto experts = static_cast<int64_t>(counts[0].size());
    const Expected expected = ExpectedOf(counts, rank, round, rows_max);
    const Values x = Random(dtype, rows_max * columns);
    const Values before = Random(dtype, rows_max * columns);
    Values grouped = before, received = before;
    for (size_t row = 0; row < expected.received.size(); ++row) {
      for (int64_t c = 0; c < columns; ++c) {
        const int64_t at = expected.received[row] * columns + c;
        grouped[row * columns + c] = x[at];
        received[at] = x[row * columns + c];
      }
    }
    const TestTensor offsets(device(), {ranks, experts + 1}, OffsetsOf(counts),
                             DType::kI32);
    const RoundOfRows of = {.offsets = offsets,
                            .rank = rank,
                            .number = round,
                            .rows_max = rows_max};
    const TestTensor tx(device(), {rows_max, columns}, x, dtype);
    const TestTensor y(device(), {rows_max, columns}, before, dtype);
    const TestTensor back(device(), {rows_max, columns}, before, dtype);
    const TestTensor own(device(), DType::kI32, {experts / ranks + 1});
    Regroup(device(), {.round = of, .x = tx, .y = y});
    Ungroup(device(), {.round = of, .x = tx, .y = back});
    OwnOffsets(device(), {.round = of, .own_offsets = own});
    EXPECT_EQ(y.Read(), grouped);
    EXPECT_EQ(back.Read(), received);
    EXPECT_EQ(own.Read(), expected.own_offsets);
  }

  // All rounds of all ranks, and one beyond the last.
  void ExpectAll(const Counts& counts, int64_t rows_max, int64_t columns,
                 DType dtype) {
    int64_t rows = 0;
    for (const std::vector<int>& of_rank : counts) {
      for (const int count : of_rank) rows += count;
    }
    for (int rank = 0; rank < static_cast<int>(counts.size()); ++rank) {
      for (int64_t round = 0; round * rows_max <= rows + rows_max; ++round) {
        Expect(counts, rank, round, rows_max, columns, dtype);
      }
    }
  }

  Counts RandomCounts(int ranks, int experts, int most) {
    Counts counts(ranks);
    for (std::vector<int>& of_rank : counts) {
      for (const double count : RandomInts(experts, -most / 2, most)) {
        of_rank.push_back(std::max(0, static_cast<int>(count)));
      }
    }
    return counts;
  }
};

TEST_P(RegroupTest, MovesTheRowsOfEachRoundAndNoOthers) {
  for (const DType dtype : ActivationTypes()) {
    for (const int64_t columns : {1, 7, 64}) {
      ExpectAll(RandomCounts(3, 6, 9), 20, columns, dtype);
    }
  }
}

TEST_P(RegroupTest, MovesAnyRouting) {
  const Counts none(2, std::vector<int>(4, 0));
  ExpectAll(none, 5, 3, DType::kF32);
  ExpectAll({{0, 0, 0, 12}, {0, 0, 0, 12}}, 24, 3, DType::kF32);
  ExpectAll({{0, 0, 0, 12}, {0, 0, 0, 12}}, 5, 3, DType::kF32);
  ExpectAll({{3, 4, 5, 0}, {0, 0, 0, 0}}, 6, 3, DType::kF32);
  ExpectAll({{7}}, 7, 3, DType::kF32);  // a single rank and expert
  // More blocks than a block of threads has threads, and than there are rows.
  ExpectAll(RandomCounts(8, 320, 2), 700, 2, DType::kF32);
}

TROUPE_ON_EACH_DEVICE(RegroupTest);

}  // namespace
}  // namespace troupe
