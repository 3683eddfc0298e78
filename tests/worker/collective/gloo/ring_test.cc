#include "worker/collective/gloo/ring.h"

#include <vector>

#include "gtest/gtest.h"
#include "proto/plan/layout.h"
#include "tests/worker/collective/even_blocks.h"
#include "tests/worker/collective/gloo/on_wires.h"

namespace troupe {
namespace {

// Below the number of ranks, around one and around several segments of a block.
const int64_t kSizes[] = {1, 2, 5, 1000, 131'071, 524'289, 2'100'001};

int64_t Value(int rank, int64_t i) { return (rank + 1) * (i % 1009) + rank; }

int64_t Sum(int ranks, int64_t i) {
  int64_t sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += Value(rank, i);
  return sum;
}

std::vector<int64_t> Values(int rank, int64_t size) {
  std::vector<int64_t> values(size);
  for (int64_t i = 0; i < size; ++i) values[i] = Value(rank, i);
  return values;
}

// Calls `body` on each rank with its numbers, for each size.
void ForEachSize(
    int ranks, const std::function<void(Wires&, std::vector<int64_t>&)>& body) {
  OnWires(ranks, [&](Wires& wires) {
    for (const int64_t size : kSizes) {
      std::vector<int64_t> values = Values(wires.rank(), size);
      body(wires, values);
    }
  });
}

CommBuffer View(std::vector<int64_t>& values) {
  return CommBuffer::Of(absl::MakeSpan(values));
}

class RingTest : public testing::TestWithParam<int> {};

TEST_P(RingTest, AllReduce) {
  ForEachSize(GetParam(), [](Wires& wires, std::vector<int64_t>& values) {
    const absl::Status status = Operation(wires, [&] {
      return RingAllReduce(wires, EvenBlocks(values, wires.size()).blocks(),
                           ReduceOp::kSum);
    });
    ASSERT_TRUE(status.ok()) << status;
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(values[i], Sum(wires.size(), i)) << i;
    }
  });
}

TEST_P(RingTest, ReduceScatterThenAllGather) {
  ForEachSize(GetParam(), [](Wires& wires, std::vector<int64_t>& values) {
    const EvenBlocks blocks(values, wires.size());
    const CommBuffer own = blocks.blocks().Of(wires.rank());
    absl::Status status = Operation(wires, [&] {
      return RingReduceScatter(wires, blocks.blocks(), own, ReduceOp::kSum);
    });
    ASSERT_TRUE(status.ok()) << status;
    const Range block = EvenPiece(
        values.size(), {.index = wires.rank(), .count = wires.size()});
    for (int64_t i = block.begin; i < block.end; ++i) {
      ASSERT_EQ(values[i], Sum(wires.size(), i)) << i;
    }
    status =
        Operation(wires, [&] { return RingAllGather(wires, blocks.blocks()); });
    ASSERT_TRUE(status.ok()) << status;
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(values[i], Sum(wires.size(), i)) << i;
    }
  });
}

// All sums of a block are taken in one order, so in place or not, and whole or
// in blocks, the bits are the same.
TEST_P(RingTest, EverySumHasTheSameBits) {
  OnWires(GetParam(), [](Wires& wires) {
    const int64_t size = 300'007;
    std::vector<float> whole(size);
    for (int64_t i = 0; i < size; ++i) {
      whole[i] = 1.0f / static_cast<float>(1 + wires.rank() + i % 1009);
    }
    std::vector<float> scattered = whole;
    const EvenBlocks all(whole, wires.size());
    const EvenBlocks cut(scattered, wires.size());
    const ElementRange& range = cut.blocks().ranges[wires.rank()];
    std::vector<float> apart(range.size());
    const absl::Status status = Operation(wires, [&] {
      return RingReduceScatter(wires, cut.blocks(),
                               CommBuffer::Of(absl::MakeSpan(apart)),
                               ReduceOp::kSum);
    });
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(Operation(wires, [&] {
                  return RingAllReduce(wires, all.blocks(), ReduceOp::kSum);
                }).ok());
    for (int64_t i = range.begin; i < range.end; ++i) {
      ASSERT_EQ(apart[i - range.begin], whole[i]) << i;
    }
  });
}

TEST_P(RingTest, Broadcast) {
  ForEachSize(GetParam(), [](Wires& wires, std::vector<int64_t>& values) {
    const int root = static_cast<int>(values.size() % wires.size());
    const absl::Status status = Operation(
        wires, [&] { return RingBroadcast(wires, View(values), root); });
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(values, Values(root, values.size()));
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, RingTest, testing::Values(2, 3, 4, 5));

}  // namespace
}  // namespace troupe
