#include "worker/collective/gloo/exchange.h"

#include <atomic>
#include <vector>

#include "gtest/gtest.h"
#include "proto/plan/layout.h"
#include "tests/worker/collective/even_blocks.h"
#include "tests/worker/collective/gloo/on_wires.h"

namespace troupe {
namespace {

// Also above what communicators ever exchange directly; several segments.
const int64_t kSizes[] = {1, 2, 5, 1000, 65'537, 300'001};

int32_t Value(int rank, int64_t i) {
  return static_cast<int32_t>((rank + 1) * (i % 1009) + rank);
}

int32_t Sum(int ranks, int64_t i) {
  int32_t sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += Value(rank, i);
  return sum;
}

std::vector<int32_t> Values(int rank, int64_t size) {
  std::vector<int32_t> values(size);
  for (int64_t i = 0; i < size; ++i) values[i] = Value(rank, i);
  return values;
}

CommBuffer View(std::vector<int32_t>& values) {
  return CommBuffer::Of(absl::MakeSpan(values));
}

class ExchangeTest : public testing::TestWithParam<int> {};

TEST_P(ExchangeTest, AllReduce) {
  OnWires(GetParam(), [](Wires& wires) {
    for (const int64_t size : kSizes) {
      std::vector<int32_t> values = Values(wires.rank(), size);
      const absl::Status status = Operation(wires, [&] {
        return DirectAllReduce(wires, View(values), ReduceOp::kSum);
      });
      ASSERT_TRUE(status.ok()) << status;
      for (int64_t i = 0; i < size; ++i) {
        ASSERT_EQ(values[i], Sum(wires.size(), i)) << i;
      }
    }
  });
}

TEST_P(ExchangeTest, ReduceScatterThenAllGather) {
  OnWires(GetParam(), [](Wires& wires) {
    for (const int64_t size : kSizes) {
      std::vector<int32_t> values = Values(wires.rank(), size);
      const EvenBlocks blocks(values, wires.size());
      const CommBuffer own = blocks.blocks().Of(wires.rank());
      absl::Status status = Operation(wires, [&] {
        return DirectReduceScatter(wires, blocks.blocks(), own, ReduceOp::kSum);
      });
      ASSERT_TRUE(status.ok()) << status;
      const Range block =
          EvenPiece(size, {.index = wires.rank(), .count = wires.size()});
      for (int64_t i = block.begin; i < block.end; ++i) {
        ASSERT_EQ(values[i], Sum(wires.size(), i)) << i;
      }
      status = Operation(
          wires, [&] { return DirectAllGather(wires, blocks.blocks()); });
      ASSERT_TRUE(status.ok()) << status;
      for (int64_t i = 0; i < size; ++i) {
        ASSERT_EQ(values[i], Sum(wires.size(), i)) << i;
      }
    }
  });
}

TEST_P(ExchangeTest, Broadcast) {
  OnWires(GetParam(), [](Wires& wires) {
    for (int root = 0; root < wires.size(); ++root) {
      std::vector<int32_t> values = Values(wires.rank(), 1000);
      const absl::Status status = Operation(
          wires, [&] { return DirectBroadcast(wires, View(values), root); });
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_EQ(values, Values(root, 1000));
    }
  });
}

TEST_P(ExchangeTest, ReduceToEachRoot) {
  OnWires(GetParam(), [](Wires& wires) {
    for (int root = 0; root < wires.size(); ++root) {
      std::vector<int32_t> whole = Values(wires.rank(), 1000);
      std::vector<int32_t> gathered = whole;
      ASSERT_TRUE(Operation(wires, [&] {
                    return DirectReduce(wires, View(whole), root,
                                        ReduceOp::kSum);
                  }).ok());
      const EvenBlocks blocks(gathered, wires.size());
      ASSERT_TRUE(Operation(wires, [&] {
                    return DirectGather(wires, blocks.blocks(), root);
                  }).ok());
      if (wires.rank() != root) continue;
      for (int64_t i = 0; i < 1000; ++i) {
        ASSERT_EQ(whole[i], Sum(wires.size(), i)) << i;
      }
      for (int rank = 0; rank < wires.size(); ++rank) {
        const ElementRange& range = blocks.blocks().ranges[rank];
        for (int64_t i = range.begin; i < range.end; ++i) {
          ASSERT_EQ(gathered[i], Value(rank, i)) << i;
        }
      }
    }
  });
}

TEST_P(ExchangeTest, AllToAll) {
  OnWires(GetParam(), [](Wires& wires) {
    const int64_t block = 1000;
    std::vector<int32_t> send = Values(wires.rank(), block * wires.size());
    std::vector<int32_t> receive(send.size());
    const EvenBlocks out(send, wires.size()), in(receive, wires.size());
    const absl::Status status = Operation(wires, [&] {
      return DirectAllToAll(wires, out.blocks(), in.blocks());
    });
    ASSERT_TRUE(status.ok()) << status;
    for (int64_t i = 0; i < block * wires.size(); ++i) {
      if (i / block == wires.rank()) continue;  // what a rank keeps
      ASSERT_EQ(receive[i], Value(static_cast<int>(i / block),
                                  wires.rank() * block + i % block));
    }
  });
}

TEST_P(ExchangeTest, Barrier) {
  std::atomic<int> entered = 0;
  OnWires(GetParam(), [&](Wires& wires) {
    for (int round = 1; round <= 20; ++round) {
      ++entered;
      ASSERT_TRUE(
          Operation(wires, [&] { return DisseminationBarrier(wires); }).ok());
      ASSERT_GE(entered.load(), round * wires.size());
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, ExchangeTest, testing::Values(2, 3, 4, 5));

}  // namespace
}  // namespace troupe
