#include "tests/worker/collective/communicator_contract.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#include "proto/base/bf16.h"
#include "proto/base/fp16.h"
#include "proto/base/philox.h"
#include "proto/plan/layout.h"

namespace troupe {
namespace {

// None, one, fewer than ranks, odd, and two that take the ring.
const int64_t kSizes[] = {0, 1, 3, 257, 16389, 70001};

// Small whole numbers: sums of them are exact in every type.
template <typename T>
T Value(int rank, int64_t i) {
  return static_cast<T>((rank * 7 + i * 3 + i / 11) % 10);
}

// The one of rank, element by element.
template <typename T>
std::vector<T> Values(int rank, int64_t size) {
  std::vector<T> values(size);
  for (int64_t i = 0; i < size; ++i) values[i] = Value<T>(rank, i);
  return values;
}

template <typename T>
CommBuffer View(std::vector<T>& values) {
  return CommBuffer::Of(absl::MakeSpan(values));
}

template <typename T>
T Reduced(ReduceOp op, int ranks, int64_t i) {
  T result = Value<T>(0, i);
  for (int rank = 1; rank < ranks; ++rank) {
    const T next = Value<T>(rank, i);
    result = op == ReduceOp::kSum ? result + next : std::max(result, next);
  }
  return result;
}

Range BlockOf(const Communicator& communicator, int64_t size, int index) {
  return EvenPiece(size, {.index = index, .count = communicator.size()});
}

template <typename T>
void ExpectReductions(Communicator& communicator, ReduceOp op) {
  const int ranks = communicator.size();
  for (const int64_t size : kSizes) {
    std::vector<T> all = Values<T>(communicator.rank(), size);
    absl::Status status = communicator.AllReduce(View(all), op, {.name = "x"});
    ASSERT_TRUE(status.ok()) << status;
    for (int64_t i = 0; i < size; ++i) {
      ASSERT_EQ(all[i], Reduced<T>(op, ranks, i)) << i << " of " << size;
    }
    std::vector<T> mine = Values<T>(communicator.rank(), size);
    const Range block = BlockOf(communicator, size, communicator.rank());
    std::vector<T> sum(block.size());
    status = communicator.ReduceScatter(
        {.send = View(mine), .receive = View(sum)}, op, {.name = "x"});
    ASSERT_TRUE(status.ok()) << status;
    for (int64_t i = block.begin; i < block.end; ++i) {
      ASSERT_EQ(sum[i - block.begin], Reduced<T>(op, ranks, i))
          << i << " of " << size;
    }
  }
}

float Random(int rank, int64_t i) {
  const PhiloxStream stream{.seed = 5, .site = static_cast<uint32_t>(rank)};
  return PhiloxUniform(PhiloxUint32(stream, i)) - 0.5f;
}

// A type whose sums are taken in f32.
struct Narrow {
  DType element;
  float (*widened)(uint16_t);
  uint16_t (*rounded)(float);
};

void ExpectRoundedOnce(Communicator& communicator, const Narrow& type) {
  const auto view = [&](std::vector<uint16_t>& values) {
    CommBuffer buffer = View(values);
    buffer.element = type.element;
    return buffer;
  };
  const auto number = [&](int rank, int64_t i) {
    return type.widened(type.rounded(Random(rank, i)));
  };
  for (const int64_t size : {1, 300, 300001}) {
    std::vector<uint16_t> values(size), expected(size);
    for (int64_t i = 0; i < size; ++i) {
      if (i >= 4096) {  // over and over
        values[i] = values[i - 4096];
        expected[i] = expected[i - 4096];
        continue;
      }
      values[i] = type.rounded(Random(communicator.rank(), i));
      float sum = number(0, i);
      for (int rank = 1; rank < communicator.size(); ++rank) {
        sum += number(rank, i);
      }
      expected[i] = type.rounded(sum);
    }
    std::vector<uint16_t> scattered = values;
    ASSERT_TRUE(communicator.AllReduce(view(values), ReduceOp::kSum, {}).ok());
    EXPECT_EQ(values, expected);
    const Range block = BlockOf(communicator, size, communicator.rank());
    ASSERT_TRUE(communicator
                    .ReduceScatter({.send = view(scattered),
                                    .receive = view(scattered).Slice(
                                        block.begin, block.end)},
                                   ReduceOp::kSum, {})
                    .ok());
    for (int64_t i = block.begin; i < block.end; ++i) {
      ASSERT_EQ(scattered[i], expected[i]) << i << " of " << size;
    }
  }
}

}  // namespace

TEST_P(CommunicatorContract, ReducesEveryTypeAndSize) {
  Together(GetParam(), [](Communicator& communicator) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax}) {
      ExpectReductions<float>(communicator, op);
      ExpectReductions<double>(communicator, op);
      ExpectReductions<int32_t>(communicator, op);
      ExpectReductions<int64_t>(communicator, op);
    }
  });
}

TEST_P(CommunicatorContract, NarrowSumsAreRoundedOnce) {
  if (!GetParam().rounds_once) GTEST_SKIP() << "it rounds what each adds";
  Together(GetParam(), [](Communicator& communicator) {
    ExpectRoundedOnce(communicator, {DType::kBF16, FromBF16, ToBF16});
    ExpectRoundedOnce(communicator, {DType::kF16, FromFP16, ToFP16});
  });
}

TEST_P(CommunicatorContract, LargeSumsAreTheSameBitsOnAllRanksAndRuns) {
  constexpr int64_t kSize = 1'500'001;  // 6 MB
  const int ranks = GetParam().ranks;
  std::vector<std::vector<float>> first(ranks), second(ranks);
  for (auto* results : {&first, &second}) {
    Together(GetParam(), [&](Communicator& communicator) {
      std::vector<float>& mine = (*results)[communicator.rank()];
      mine.resize(kSize);
      for (int64_t i = 0; i < kSize; ++i) {
        mine[i] = i < 4096 ? Random(communicator.rank(), i) : mine[i - 4096];
      }
      const absl::Status status =
          communicator.AllReduce(View(mine), ReduceOp::kSum, {});
      ASSERT_TRUE(status.ok()) << status;
    });
  }
  for (int64_t i = 0; i < 4096; ++i) {
    double sum = 0;
    for (int rank = 0; rank < ranks; ++rank) sum += Random(rank, i);
    ASSERT_NEAR(first[0][i], sum, 1e-6);
    ASSERT_NEAR(first[0][kSize / 4096 * 4096 - 4096 + i], sum, 1e-6);
  }
  for (int rank = 0; rank < ranks; ++rank) {
    EXPECT_EQ(first[rank], first[0]);
    EXPECT_EQ(second[rank], first[0]);
  }
}

TEST_P(CommunicatorContract, NotANumberWinsAMaximum) {
  if (GetParam().backend == "nccl") GTEST_SKIP() << "it loses in NCCL's";
  Together(GetParam(), [](Communicator& communicator) {
    std::vector<float> values = {1.0f, 2.0f};
    if (communicator.rank() == communicator.size() - 1) values[1] = NAN;
    ASSERT_TRUE(communicator.AllReduce(View(values), ReduceOp::kMax, {}).ok());
    EXPECT_EQ(values[0], 1.0f);
    EXPECT_TRUE(std::isnan(values[1]));
  });
}

TEST_P(CommunicatorContract, BroadcastsFromEachRoot) {
  Together(GetParam(), [](Communicator& communicator) {
    for (const int64_t size : {0, 1, 257, 400'003}) {
      for (int root = 0; root < communicator.size(); ++root) {
        std::vector<char> values = Values<char>(communicator.rank(), size);
        ASSERT_TRUE(communicator.Broadcast(View(values), root, {}).ok());
        ASSERT_EQ(values, Values<char>(root, size)) << "root " << root;
      }
    }
  });
}

TEST_P(CommunicatorContract, BroadcastsLeaveWhatIsSent) {
  Together(GetParam(), [](Communicator& communicator) {
    for (const int64_t size : {0, 1, 257, 400'003}) {
      for (int root = 0; root < communicator.size(); ++root) {
        std::vector<char> own = Values<char>(communicator.rank(), size);
        std::vector<char> received(size, -1);
        const absl::Status status = communicator.Broadcast(
            {.send = View(own), .receive = View(received)}, root, {});
        ASSERT_TRUE(status.ok()) << status;
        ASSERT_EQ(received, Values<char>(root, size)) << "root " << root;
        ASSERT_EQ(own, Values<char>(communicator.rank(), size));
      }
    }
  });
}

// Each of the ranks in turn, into one buffer, as panels' gradients are.
TEST_P(CommunicatorContract, ReductionsWriteOnTheirRoot) {
  Together(GetParam(), [](Communicator& communicator) {
    const int ranks = communicator.size();
    for (const int64_t size : {0, 1, 257, 100'003}) {
      std::vector<float> received(size, -1);
      for (int root = 0; root < ranks; ++root) {
        std::vector<float> summand(
            size, static_cast<float>(communicator.rank() + 10 * root));
        const std::vector<float> before = received;
        const absl::Status status = communicator.Reduce(
            {.send = View(summand), .receive = View(received)}, root,
            ReduceOp::kSum, {});
        ASSERT_TRUE(status.ok()) << status;
        const auto sum =
            static_cast<float>(ranks * (ranks - 1) / 2 + 10 * root * ranks);
        ASSERT_EQ(received, communicator.rank() == root
                                ? std::vector<float>(size, sum)
                                : before);
      }
    }
  });
}

TEST_P(CommunicatorContract, ExchangesBlocksAllToAll) {
  Together(GetParam(), [](Communicator& communicator) {
    const int ranks = communicator.size();
    const int me = communicator.rank();
    for (const int64_t block : {0, 1, 257, 50'001}) {
      std::vector<int64_t> send(block * ranks), receive(block * ranks, -1);
      for (int64_t i = 0; i < block * ranks; ++i) {
        send[i] = me * int64_t{1'000'000'000} + i;
      }
      ASSERT_TRUE(
          communicator
              .AllToAll({.send = View(send), .receive = View(receive)}, {})
              .ok());
      for (int from = 0; from < ranks; ++from) {
        for (int64_t i = 0; i < block; ++i) {
          ASSERT_EQ(receive[from * block + i],
                    from * int64_t{1'000'000'000} + me * block + i);
        }
      }
    }
  });
}

TEST_P(CommunicatorContract, SendsRoundARing) {
  Together(GetParam(), [](Communicator& communicator) {
    const int ranks = communicator.size();
    const int me = communicator.rank();
    if (ranks == 1) return;
    for (const int64_t size : {0, 1, 257, 1'000'003}) {
      std::vector<double> token = Values<double>(me, size);
      const int next = (me + 1) % ranks;
      const int previous = (me + ranks - 1) % ranks;
      // Rank 0's numbers go round and come home; each rank passes them on.
      if (me == 0) {
        ASSERT_TRUE(communicator.Send(View(token), next, {}).ok());
        std::fill(token.begin(), token.end(), -1.0);
      }
      ASSERT_TRUE(communicator.Recv(View(token), previous, {}).ok());
      if (me != 0) {
        ASSERT_TRUE(communicator.Send(View(token), next, {}).ok());
      }
      ASSERT_EQ(token, Values<double>(0, size));
    }
  });
}

TEST_P(CommunicatorContract, MessagesOfOneSenderKeepTheirOrder) {
  Together(GetParam(), [](Communicator& communicator) {
    for (int32_t i = 0; i < 100; ++i) {
      for (int peer = 1; peer < communicator.size(); ++peer) {
        std::vector<int32_t> value = {peer * 1000 + i};
        if (communicator.rank() == 0) {
          ASSERT_TRUE(communicator.Send(View(value), peer, {}).ok());
        } else if (communicator.rank() == peer) {
          value[0] = -1;
          ASSERT_TRUE(communicator.Recv(View(value), 0, {}).ok());
          ASSERT_EQ(value[0], peer * 1000 + i);
        }
      }
    }
  });
}

TEST_P(CommunicatorContract, NobodyLeavesABarrierBeforeAllHaveEntered) {
  std::atomic<int> entered = 0;
  Together(GetParam(), [&](Communicator& communicator) {
    for (int round = 1; round <= 50; ++round) {
      ++entered;
      ASSERT_TRUE(communicator.Barrier({}).ok());
      ASSERT_GE(entered.load(), round * communicator.size());
      ASSERT_TRUE(communicator.Barrier({}).ok());
    }
  });
}

TEST_P(CommunicatorContract, ManyCommunicatorsAtOnce) {
  constexpr int kLanes = 3;
  const RanksOptions options = GetParam();
  OnThreads(kLanes, [&](int lane) {
    Together(options, [&](Communicator& communicator) {
      for (int round = 0; round < 20; ++round) {
        std::vector<float> values(1 + (lane * 977 + round * 4099) % 40000,
                                  lane + round + 1.0f);
        ASSERT_TRUE(
            communicator.AllReduce(View(values), ReduceOp::kSum, {}).ok());
        for (const float value : values) {
          ASSERT_EQ(value, (lane + round + 1.0f) * communicator.size());
        }
      }
    });
  });
}

TEST_P(CommunicatorContract, KnowsItsGroup) {
  const int ranks = GetParam().ranks;
  Together(GetParam(), [ranks](Communicator& communicator) {
    EXPECT_EQ(communicator.size(), ranks);
    EXPECT_EQ(communicator.group().name, "test-group");
    EXPECT_EQ(communicator.group().ranks[communicator.rank()],
              GlobalRank(communicator.rank()));
  });
}

}  // namespace troupe
