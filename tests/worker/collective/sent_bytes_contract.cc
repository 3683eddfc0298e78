// Of communicators: the bytes that they count as sent are the papers'.
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include "tests/worker/collective/communicator_contract.h"

namespace troupe {
namespace {

using Call = std::function<absl::Status(Communicator& communicator,
                                        CommBuffer data, CommBuffer other)>;

absl::Status AllReduce(Communicator& communicator, CommBuffer data,
                       CommBuffer other) {
  return communicator.AllReduce(data, ReduceOp::kSum, {});
}

absl::Status ReduceScatter(Communicator& communicator, CommBuffer data,
                           CommBuffer other) {
  const CommBuffer own = communicator.Block(other, communicator.rank());
  return communicator.ReduceScatter({.send = data, .receive = own},
                                    ReduceOp::kSum, {});
}

absl::Status AllGather(Communicator& communicator, CommBuffer data,
                       CommBuffer other) {
  const CommBuffer own = communicator.Block(other, communicator.rank());
  return communicator.AllGather({.send = own, .receive = data}, {});
}

absl::Status Reduce(Communicator& communicator, CommBuffer data,
                    CommBuffer other) {
  return communicator.Reduce(data, 0, ReduceOp::kSum, {});
}

absl::Status Broadcast(Communicator& communicator, CommBuffer data,
                       CommBuffer other) {
  return communicator.Broadcast(data, 0, {});
}

absl::Status AllToAll(Communicator& communicator, CommBuffer data,
                      CommBuffer other) {
  return communicator.AllToAll({.send = data, .receive = other}, {});
}

absl::Status Shift(Communicator& communicator, CommBuffer data,
                   CommBuffer other) {
  const int size = communicator.size();
  return communicator.Shift({.send = data,
                             .to = (communicator.rank() + 1) % size,
                             .receive = other,
                             .from = (communicator.rank() + size - 1) % size},
                            {});
}

absl::Status Barrier(Communicator& communicator, CommBuffer, CommBuffer) {
  return communicator.Barrier({});
}

// What each rank counts of a call with a buffer of some elements, each time:
// the first, which may have tried out how to copy, and the next.
template <typename T>
std::vector<uint64_t> SentBytes(const RanksOptions& options, const Call& call,
                                int64_t elements) {
  std::vector<uint64_t> sent(options.ranks);
  Together(options, [&](Communicator& communicator) {
    std::vector<T> data(elements), other(elements);
    for (int time = 0; time < 2; ++time) {
      const uint64_t before = communicator.sent_bytes();
      const absl::Status status =
          call(communicator, CommBuffer::Of(absl::MakeSpan(data)),
               CommBuffer::Of(absl::MakeSpan(other)));
      ASSERT_TRUE(status.ok()) << status;
      const uint64_t more = communicator.sent_bytes() - before;
      if (time > 0) {
        EXPECT_EQ(more, sent[communicator.rank()]);
      }
      sent[communicator.rank()] = more;
    }
  });
  return sent;
}

// Of an all-to-all of even blocks, by each rank: on each level its blocks for
// other places.
uint64_t ExchangedBytes(const RanksOptions& options, uint64_t bytes) {
  std::vector<int> levels = options.exchange_levels;
  if (levels.empty()) levels = {options.ranks};
  uint64_t sent = 0;
  for (const uint64_t size : levels) sent += bytes / size * (size - 1);
  return sent;
}

uint64_t Total(const std::vector<uint64_t>& values) {
  return std::accumulate(values.begin(), values.end(), uint64_t{0});
}

}  // namespace

// Blocks that are even: to the byte, at each rank. Sizes that pass through
// slots and rings in one piece and in many.
TEST_P(CommunicatorContract, EachRankSendsTheBytesOfThePaper) {
  const RanksOptions options = GetParam();
  const uint64_t n = options.ranks;
  for (const int64_t block : {40'000, 300'000}) {
    const uint64_t bytes = block * n * sizeof(float);
    const std::vector<uint64_t> once(n, bytes / n * (n - 1));
    const std::vector<uint64_t> twice(n, 2 * bytes / n * (n - 1));
    const std::vector<uint64_t> all(n, n == 1 ? 0 : bytes);
    const int64_t size = block * options.ranks;
    if (options.sums_up_a_tree) {
      EXPECT_GE(Total(SentBytes<float>(options, AllReduce, size)),
                2 * (n - 1) * bytes);
    } else {
      EXPECT_EQ(SentBytes<float>(options, AllReduce, size), twice);
    }
    EXPECT_EQ(SentBytes<float>(options, ReduceScatter, size), once);
    EXPECT_EQ(SentBytes<float>(options, AllGather, size), once);
    EXPECT_EQ(SentBytes<float>(options, AllToAll, size),
              std::vector<uint64_t>(n, ExchangedBytes(options, bytes)));
    EXPECT_EQ(SentBytes<float>(options, Shift, size), all);
    EXPECT_EQ(Total(SentBytes<float>(options, Broadcast, size)),
              (n - 1) * bytes);
    const std::vector<uint64_t> reduced =
        SentBytes<float>(options, Reduce, size);
    if (options.sums_up_a_tree) {
      EXPECT_EQ(reduced, SentBytes<float>(options, AllReduce, size));
      continue;
    }
    if (options.reduces_over_levels) {
      EXPECT_LE(Total(reduced), 2 * (n - 1) * bytes) << "than an all-reduce";
      continue;
    }
    EXPECT_LE(reduced[0], once[0]);
    for (uint64_t rank = 1; rank < n; ++rank) EXPECT_EQ(reduced[rank], bytes);
  }
  // NCCL sums in f32.
  if (options.backend == "nccl" || options.sums_up_a_tree) return;
  const uint64_t bytes = 120'000 * n * sizeof(uint16_t);
  EXPECT_EQ(SentBytes<uint16_t>(options, AllReduce, 120'000 * options.ranks),
            std::vector<uint64_t>(n, 2 * bytes / n * (n - 1)));
  EXPECT_EQ(
      SentBytes<uint16_t>(options, ReduceScatter, 120'000 * options.ranks),
      std::vector<uint64_t>(n, bytes / n * (n - 1)));
}

// Others: all together.
TEST_P(CommunicatorContract, UnevenBlocksSumUpToTheBytesOfThePaper) {
  const RanksOptions options = GetParam();
  const uint64_t n = options.ranks;
  for (const int64_t size : {3, 100'003}) {
    const uint64_t bytes = size * sizeof(double);
    EXPECT_EQ(Total(SentBytes<double>(options, ReduceScatter, size)),
              (n - 1) * bytes);
    EXPECT_EQ(Total(SentBytes<double>(options, AllGather, size)),
              (n - 1) * bytes);
    if (size < 100 || options.sums_up_a_tree) continue;
    EXPECT_EQ(Total(SentBytes<double>(options, AllReduce, size)),
              2 * (n - 1) * bytes);
  }
}

// In steps over blocks, or in one step with all of it.
TEST_P(CommunicatorContract, SmallAllReducesSendBlocksOrAll) {
  const RanksOptions options = GetParam();
  if (options.in_pieces) GTEST_SKIP() << "its pieces are uneven";
  if (options.sums_up_a_tree) GTEST_SKIP() << "its ranks send unlike bytes";
  const uint64_t n = options.ranks;
  const uint64_t bytes = 4 * n * sizeof(float);
  for (const uint64_t sent :
       SentBytes<float>(options, AllReduce, 4 * options.ranks)) {
    EXPECT_TRUE(sent == 2 * bytes / n * (n - 1) || sent == (n - 1) * bytes)
        << sent;
  }
}

TEST_P(CommunicatorContract, ABarrierSendsNothingThatCounts) {
  EXPECT_EQ(Total(SentBytes<float>(GetParam(), Barrier, 1)), 0);
}

}  // namespace troupe
