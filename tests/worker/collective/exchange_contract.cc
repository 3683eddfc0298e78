// Of communicators: reductions to one rank, blocks of any size from all to all,
// and shifts.
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "proto/base/philox.h"
#include "tests/worker/collective/communicator_contract.h"
#include "tests/worker/collective/tells.h"

namespace troupe {
namespace {

template <typename T>
CommBuffer View(std::vector<T>& values) {
  return CommBuffer::Of(absl::MakeSpan(values));
}

float Random(int rank, int64_t i) {
  const PhiloxStream stream{.seed = 9, .site = static_cast<uint32_t>(rank)};
  return PhiloxUniform(PhiloxUint32(stream, i)) - 0.5f;
}

template <typename T>
T Of(float value) {
  return static_cast<T>(value);
}
// bf16 is the upper half of a float.
template <>
uint16_t Of<uint16_t>(float value) {
  uint32_t bits;
  static_assert(sizeof(bits) == sizeof(value));
  std::memcpy(&bits, &value, sizeof(bits));
  return static_cast<uint16_t>(bits >> 16);
}

// Some numbers over and over.
template <typename T>
std::vector<T> Numbers(int rank, int64_t size) {
  std::vector<T> numbers(size);
  for (int64_t i = 0; i < size; ++i) {
    numbers[i] = i < 997 ? Of<T>(Random(rank, i)) : numbers[i - 997];
  }
  return numbers;
}

template <typename T>
void ExpectRootHasTheBitsOfAnAllReduce(Communicator& communicator,
                                       ReduceOp op) {
  for (const int64_t size : {0, 1, 3, 1000, 30'001, 400'003}) {
    const std::vector<T> values = Numbers<T>(communicator.rank(), size);
    std::vector<T> all = values;
    ASSERT_TRUE(communicator.AllReduce(View(all), op, {}).ok());
    for (const int root : {0, communicator.size() - 1}) {
      std::vector<T> mine = values;
      const absl::Status status =
          communicator.Reduce(View(mine), root, op, {.name = "x"});
      ASSERT_TRUE(status.ok()) << status;
      if (communicator.rank() != root) continue;
      ASSERT_EQ(mine, all) << size;
    }
  }
}

// How much rank `from` has for rank `to`: nothing, little and much.
int64_t Between(int from, int to, int64_t scale) {
  return (from * 5 + to * 3) % 4 * scale;
}

int64_t Sent(int from, int to, int64_t i) {
  return from * int64_t{1'000'000'000} + to * int64_t{10'000'000} + i;
}

}  // namespace

TEST_P(CommunicatorContract, ReducesToARoot) {
  if (GetParam().backend == "nccl") GTEST_SKIP() << "the order is NCCL's";
  Together(GetParam(), [](Communicator& communicator) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax}) {
      ExpectRootHasTheBitsOfAnAllReduce<float>(communicator, op);
      ExpectRootHasTheBitsOfAnAllReduce<double>(communicator, op);
      ExpectRootHasTheBitsOfAnAllReduce<uint16_t>(communicator, op);
    }
  });
}

TEST_P(CommunicatorContract, ExchangesBlocksOfAnySize) {
  Together(GetParam(), [](Communicator& communicator) {
    const int ranks = communicator.size();
    const int me = communicator.rank();
    for (const int64_t scale : {0, 1, 257, 60'001}) {
      std::vector<int64_t> out(ranks), in(ranks), send, expected;
      for (int peer = 0; peer < ranks; ++peer) {
        out[peer] = Between(me, peer, scale);
        in[peer] = Between(peer, me, scale);
        for (int64_t i = 0; i < out[peer]; ++i) {
          send.push_back(Sent(me, peer, i));
        }
        for (int64_t i = 0; i < in[peer]; ++i) {
          expected.push_back(Sent(peer, me, i));
        }
      }
      std::vector<int64_t> receive(expected.size(), -1);
      const std::vector<ElementRange> gives = RangesOfSizes(out);
      const std::vector<ElementRange> takes = RangesOfSizes(in);
      const absl::Status status =
          communicator.AllToAll({.send = View(send),
                                 .receive = View(receive),
                                 .send_ranges = gives,
                                 .receive_ranges = takes},
                                {.name = "tokens"});
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_EQ(receive, expected) << scale;
      // What follows finds the group in step.
      ASSERT_TRUE(communicator.Barrier({}).ok());
    }
  });
}

namespace {

// How much each rank has for each peer: elements, by rank and peer.
using Traffic = std::function<int64_t(int from, int to, int ranks)>;

const std::pair<const char*, Traffic> kHostile[] = {
    {"nobody", [](int, int, int) { return 0; }},
    {"all to one", [](int, int to, int) { return to == 0 ? 3'001 : 0; }},
    {"all to the last",
     [](int from, int to, int ranks) {
       return to == ranks - 1 ? 70'000 + from : 0;
     }},
    {"one to all",
     [](int from, int to, int ranks) {
       return from == ranks - 1 ? 513 * (to + 1) : 0;
     }},
    {"each to itself", [](int from, int to, int) { return from == to; }},
    {"a ring", [](int from, int to,
                  int ranks) { return (from + 1) % ranks == to ? 257 : 0; }},
};

// The last rank's block first, and between two blocks a gap.
std::vector<ElementRange> Backwards(const std::vector<int64_t>& sizes) {
  constexpr int64_t kGap = 5;
  std::vector<ElementRange> ranges(sizes.size());
  int64_t end = kGap;
  for (size_t i = sizes.size(); i-- > 0;) {
    ranges[i] = {end, end + sizes[i]};
    end += sizes[i] + kGap;
  }
  return ranges;
}

int64_t Elements(const std::vector<ElementRange>& backwards) {
  return backwards.front().end + 5;
}

void ExchangeBackwards(Communicator& communicator, const Traffic& traffic) {
  const int ranks = communicator.size();
  const int me = communicator.rank();
  std::vector<int64_t> out(ranks), in(ranks);
  for (int peer = 0; peer < ranks; ++peer) {
    out[peer] = traffic(me, peer, ranks);
    in[peer] = traffic(peer, me, ranks);
  }
  const std::vector<ElementRange> gives = Backwards(out);
  const std::vector<ElementRange> takes = Backwards(in);
  std::vector<int64_t> send(Elements(gives), -2);
  std::vector<int64_t> receive(Elements(takes), -1), expected = receive;
  uint64_t bytes = 0;
  for (int peer = 0; peer < ranks; ++peer) {
    if (peer != me) bytes += out[peer] * sizeof(int64_t);
    for (int64_t i = 0; i < out[peer]; ++i) {
      send[gives[peer].begin + i] = Sent(me, peer, i);
    }
    for (int64_t i = 0; i < in[peer]; ++i) {
      expected[takes[peer].begin + i] = Sent(peer, me, i);
    }
  }
  // All are there before one counts.
  ASSERT_TRUE(communicator.Barrier({}).ok());
  const uint64_t before = communicator.sent_bytes();
  const absl::Status status = communicator.AllToAll({.send = View(send),
                                                     .receive = View(receive),
                                                     .send_ranges = gives,
                                                     .receive_ranges = takes},
                                                    {.name = "tokens"});
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(receive, expected);
  ASSERT_TRUE(communicator.Barrier({}).ok());
  EXPECT_EQ(communicator.sent_bytes() - before, bytes);
}

}  // namespace

TEST_P(CommunicatorContract, ExchangesBlocksInAnyOrderWithGaps) {
  Together(GetParam(), [](Communicator& communicator) {
    for (const auto& [name, traffic] : kHostile) {
      SCOPED_TRACE(name);
      ExchangeBackwards(communicator, traffic);
    }
  });
}

// Rank 0 has more for the last rank than that expects.
TEST_P(CommunicatorContract, AnExchangeThatDoesNotFitFailsAtBothEnds) {
  const int last = GetParam().ranks - 1;
  if (last == 0) return;
  Together(GetParam(), [last](Communicator& communicator) {
    const int me = communicator.rank();
    std::vector<int64_t> out(communicator.size(), 2), in = out;
    if (me == 0) out[last] = 3;
    std::vector<int32_t> send(std::accumulate(out.begin(), out.end(), 0));
    std::vector<int32_t> receive(std::accumulate(in.begin(), in.end(), 0));
    ASSERT_TRUE(communicator.Barrier({}).ok());
    const std::vector<ElementRange> gives = RangesOfSizes(out);
    const std::vector<ElementRange> takes = RangesOfSizes(in);
    const absl::Status status =
        communicator.AllToAll({.send = View(send),
                               .receive = View(receive),
                               .send_ranges = gives,
                               .receive_ranges = takes},
                              {.timeout = absl::Milliseconds(500)});
    if (me != 0 && me != last) return;
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(communicator.Barrier({}), status);
  });
}

TEST_P(CommunicatorContract, ShiftsRoundARing) {
  Together(GetParam(), [](Communicator& communicator) {
    const int ranks = communicator.size();
    const int me = communicator.rank();
    const int next = (me + 1) % ranks, before = (me + ranks - 1) % ranks;
    // Much more than what lies between two ranks on its way.
    for (const int64_t size : {0, 1, 257, 1'000'003}) {
      std::vector<double> mine(size, me), other(size, -1.0);
      for (int hop = 1; hop <= ranks; ++hop) {
        const absl::Status status = communicator.Shift({.send = View(mine),
                                                        .to = next,
                                                        .receive = View(other),
                                                        .from = before},
                                                       {.name = "keys"});
        ASSERT_TRUE(status.ok()) << status;
        mine.swap(other);
        const std::vector<double> expected(size, (me + ranks - hop) % ranks);
        ASSERT_EQ(mine, expected);
      }
    }
  });
}

// Of other sizes there than back, and one by one at one end.
TEST_P(CommunicatorContract, AShiftMeetsSendsAndReceives) {
  if (GetParam().ranks < 2) return;
  // A rank that meets the peers of both transfers first waits for one that ends
  // one first.
  if (GetParam().meet) GTEST_SKIP() << "transfers are met one by one";
  Together(GetParam(), [](Communicator& communicator) {
    if (communicator.rank() > 1) return;
    const bool first = communicator.rank() == 0;
    const int peer = 1 - communicator.rank();
    for (const int64_t size : {1, 300'000}) {
      std::vector<int32_t> out(first ? size : 2 * size, communicator.rank());
      std::vector<int32_t> in(first ? 2 * size : size, -1);
      ASSERT_TRUE(communicator
                      .Shift({.send = View(out),
                              .to = peer,
                              .receive = View(in),
                              .from = peer},
                             {})
                      .ok());
      ASSERT_EQ(in, std::vector<int32_t>(in.size(), peer));
      std::fill(in.begin(), in.end(), -1);
      if (first) {
        ASSERT_TRUE(communicator
                        .Shift({.send = View(out),
                                .to = peer,
                                .receive = View(in),
                                .from = peer},
                               {})
                        .ok());
      } else {
        ASSERT_TRUE(communicator.Recv(View(in), peer, {}).ok());
        ASSERT_TRUE(
            communicator.Shift({.send = View(out), .to = peer}, {}).ok());
      }
      ASSERT_EQ(in, std::vector<int32_t>(in.size(), peer));
    }
  });
}

// The ends of a row of ranks have one neighbour.
TEST_P(CommunicatorContract, ShiftsAlongARow) {
  Together(GetParam(), [](Communicator& communicator) {
    const int me = communicator.rank();
    const bool last = me == communicator.size() - 1;
    std::vector<int32_t> mine(200'001, me), other(200'001, -1);
    const absl::Status status =
        communicator.Shift({.send = View(mine),
                            .to = last ? kNobody : me + 1,
                            .receive = View(other),
                            .from = me == 0 ? kNobody : me - 1},
                           {});
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(other, std::vector<int32_t>(200'001, me - 1));
  });
}

}  // namespace troupe
