// Of communicators: buffers that are dealt out or brought together in blocks,
// in place and out of place, in elements and in rows.
#include <cstdint>
#include <vector>

#include "proto/plan/layout.h"
#include "tests/worker/collective/communicator_contract.h"

namespace troupe {
namespace {

// A number of rows of some elements each: none, fewer than ranks, some, and
// enough for many segments and pieces.
struct Rows {
  int64_t count;
  int64_t elements;
};
const Rows kRows[] = {{0, 1},      {1, 1},    {3, 1},     {257, 1},
                      {70'001, 1}, {2, 1000}, {4097, 65}, {5, 40'000}};

int32_t Value(int rank, int64_t i) {
  return static_cast<int32_t>((rank + 1) * 1000 + i % 997);
}

std::vector<int32_t> Values(int rank, int64_t size) {
  std::vector<int32_t> values(size);
  for (int64_t i = 0; i < size; ++i) values[i] = Value(rank, i);
  return values;
}

CommBuffer View(std::vector<int32_t>& values) {
  return CommBuffer::Of(absl::MakeSpan(values));
}

Range BlockRange(const Communicator& communicator, const Rows& rows,
                 int member) {
  const Range range =
      EvenPiece(rows.count, {.index = member, .count = communicator.size()});
  return {range.begin * rows.elements, range.end * rows.elements};
}

// What a gather of each rank's block of its own values is.
std::vector<int32_t> Gathered(const Communicator& communicator,
                              const Rows& rows) {
  std::vector<int32_t> gathered(rows.count * rows.elements);
  for (int rank = 0; rank < communicator.size(); ++rank) {
    const Range block = BlockRange(communicator, rows, rank);
    for (int64_t i = block.begin; i < block.end; ++i) {
      gathered[i] = Value(rank, i);
    }
  }
  return gathered;
}

// What a reduce-scatter has in this rank's block.
std::vector<int32_t> Scattered(const Communicator& communicator,
                               const Range& block) {
  std::vector<int32_t> sums(block.size());
  for (int rank = 0; rank < communicator.size(); ++rank) {
    for (int64_t i = block.begin; i < block.end; ++i) {
      sums[i - block.begin] += Value(rank, i);
    }
  }
  return sums;
}

}  // namespace

TEST_P(CommunicatorContract, GathersBlocksOfRows) {
  Together(GetParam(), [](Communicator& communicator) {
    const int me = communicator.rank();
    for (const Rows& rows : kRows) {
      const int64_t size = rows.count * rows.elements;
      const Range block = BlockRange(communicator, rows, me);
      std::vector<int32_t> values = Values(me, size);
      const std::vector<int32_t> expected = Gathered(communicator, rows);
      std::vector<int32_t> mine(values.begin() + block.begin,
                                values.begin() + block.end);
      const std::vector<int32_t> before = mine;
      std::vector<int32_t> gathered(size, -1);
      absl::Status status =
          communicator.AllGather({.send = View(mine),
                                  .receive = View(gathered),
                                  .row_elements = rows.elements},
                                 {.name = "x"});
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_EQ(gathered, expected);
      ASSERT_EQ(mine, before);
      status = communicator.AllGather(
          {.send = communicator.Block(View(values), me, rows.elements),
           .receive = View(values),
           .row_elements = rows.elements},
          {.name = "x"});
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_EQ(values, expected);
    }
  });
}

TEST_P(CommunicatorContract, ReducesBlocksOfRows) {
  Together(GetParam(), [](Communicator& communicator) {
    const int me = communicator.rank();
    for (const Rows& rows : kRows) {
      const int64_t size = rows.count * rows.elements;
      const Range block = BlockRange(communicator, rows, me);
      const std::vector<int32_t> expected = Scattered(communicator, block);
      std::vector<int32_t> values = Values(me, size), in_place = values;
      std::vector<int32_t> sums(block.size(), -1);
      absl::Status status =
          communicator.ReduceScatter({.send = View(values),
                                      .receive = View(sums),
                                      .row_elements = rows.elements},
                                     ReduceOp::kSum, {.name = "x"});
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_EQ(sums, expected);
      status = communicator.ReduceScatter(
          {.send = View(in_place),
           .receive = communicator.Block(View(in_place), me, rows.elements),
           .row_elements = rows.elements},
          ReduceOp::kSum, {.name = "x"});
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_EQ(std::vector<int32_t>(in_place.begin() + block.begin,
                                     in_place.begin() + block.end),
                expected);
    }
  });
}

// Blocks of any sizes, none among them, in place and not.
TEST_P(CommunicatorContract, MovesBlocksOfGivenSizes) {
  Together(GetParam(), [](Communicator& communicator) {
    const int me = communicator.rank();
    for (const bool ascending : {true, false}) {
      std::vector<ElementRange> ranges;
      int64_t size = 0;
      for (int r = 0; r < communicator.size(); ++r) {
        const int place = ascending ? r : communicator.size() - 1 - r;
        ranges.push_back({size, size + 16 * place * place});
        size = ranges.back().end;
      }
      const ElementRange& own = ranges[me];
      const Range block = {own.begin, own.end};
      std::vector<int32_t> values = Values(me, size), in_place = values;
      std::vector<int32_t> sums(block.size(), -1);
      const std::vector<int32_t> scattered = Scattered(communicator, block);
      absl::Status status = communicator.ReduceScatter(
          {.send = View(values), .receive = View(sums), .ranges = ranges},
          ReduceOp::kSum, {.name = "x"});
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_EQ(sums, scattered);
      status = communicator.ReduceScatter(
          {.send = View(in_place),
           .receive = View(in_place).Slice(own.begin, own.end),
           .ranges = ranges},
          ReduceOp::kSum, {.name = "x"});
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_EQ(std::vector<int32_t>(in_place.begin() + own.begin,
                                     in_place.begin() + own.end),
                scattered);
      std::vector<int32_t> expected(size);
      for (int r = 0; r < communicator.size(); ++r) {
        for (int64_t i = ranges[r].begin; i < ranges[r].end; ++i) {
          expected[i] = Values(r, size)[i];
        }
      }
      values = Values(me, size);
      std::vector<int32_t> gathered(size, -1);
      status = communicator.AllGather(
          {.send = View(values).Slice(own.begin, own.end),
           .receive = View(gathered),
           .ranges = ranges},
          {.name = "x"});
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_EQ(gathered, expected);
      status = communicator.AllGather(
          {.send = View(values).Slice(own.begin, own.end),
           .receive = View(values),
           .ranges = ranges},
          {.name = "x"});
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_EQ(values, expected);
    }
  });
}

}  // namespace troupe
