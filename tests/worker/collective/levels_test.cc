#include "worker/collective/levels.h"

#include <atomic>
#include <cmath>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/plan/way_bytes.h"
#include "proto/plan/ways.h"
#include "tests/ops/split_memory_device.h"
#include "tests/worker/collective/communicator_contract.h"
#include "tests/worker/collective/level_groups.h"
#include "tests/worker/collective/ranks.h"
#include "tests/worker/collective/tells.h"
#include "worker/collective/create_communicator.h"
#include "worker/collective/key_value_store.h"

namespace troupe {
namespace {

absl::StatusOr<std::unique_ptr<Communicator>> CreateStaged(
    const CommunicatorSeat& seat) {
  const auto ranks = static_cast<int>(seat.group.ranks.size());
  Group group = GroupOver(SizesFor(ranks), {"in_process", {"in_process"}});
  group.mutable_carriers(0)->set_staged(true);
  return CreateCommunicator(group, 0, seat);
}
std::unique_ptr<Device> NewSplitDevice(int) {
  return std::make_unique<SplitMemoryDevice>(CpuDeviceOptions{.threads = 1});
}

RanksOptions Staged(int ranks) {
  RanksOptions options = Over(CreateStaged, ranks);
  options.new_device = NewSplitDevice;
  return options;
}

INSTANTIATE_TEST_SUITE_P(InProcess, CommunicatorContract,
                         testing::Values(Over(CreateInOneProcess, 1),
                                         Over(CreateInOneProcess, 3),
                                         Over(CreateInOneProcess, 4),
                                         Over(CreateInOneProcess, 6),
                                         Over(CreateInOneProcess, 8)),
                         RanksName);
INSTANTIATE_TEST_SUITE_P(AcrossHosts, CommunicatorContract,
                         testing::Values(Over(CreateAcrossHosts, 2),
                                         Over(CreateAcrossHosts, 4)),
                         RanksName);
INSTANTIATE_TEST_SUITE_P(InPieces, CommunicatorContract,
                         testing::Values(Over(CreateInPieces, 3),
                                         Over(CreateInPieces, 4),
                                         Over(CreateInPieces, 6),
                                         Over(CreateInPieces, 8)),
                         RanksName);
INSTANTIATE_TEST_SUITE_P(AcrossHostsInPieces, CommunicatorContract,
                         testing::Values(Over(CreateAcrossHostsInPieces, 4)),
                         RanksName);
INSTANTIATE_TEST_SUITE_P(UpATree, CommunicatorContract,
                         testing::Values(Over(CreateUpATree, 4),
                                         Over(CreateUpATree, 6),
                                         Over(CreateUpATree, 8)),
                         RanksName);
INSTANTIATE_TEST_SUITE_P(UpATreeAcrossHosts, CommunicatorContract,
                         testing::Values(Over(CreateUpATreeAcrossHosts, 4)),
                         RanksName);
INSTANTIATE_TEST_SUITE_P(ByHalves, CommunicatorContract,
                         testing::Values(Over(CreateByHalves, 8)), RanksName);
INSTANTIATE_TEST_SUITE_P(Staged, CommunicatorContract,
                         testing::Values(Staged(4)), RanksName);

// Numbers whose sums depend on the order.
float NumberOf(int rank, int64_t i) {
  return std::sin(static_cast<float>(i % 977) + 0.37f * rank) *
         std::pow(10.0f, static_cast<float>((i + 3 * rank) % 7));
}

std::vector<float> NumbersOf(int rank, int64_t size) {
  std::vector<float> numbers(size);
  for (int64_t i = 0; i < size; ++i) numbers[i] = NumberOf(rank, i);
  return numbers;
}

// More than the memory for pieces takes at once, and a row that one rank lacks.
constexpr int64_t kManyPieces = 3 * kLevelScratchBytes / 4 / 2 + 5;

void ExpectScattersAndGathers(Create create) {
  Together(Over(create, 6), [](Communicator& communicator) {
    std::vector<float> numbers(kManyPieces);
    for (int64_t i = 0; i < kManyPieces; ++i) {
      numbers[i] = static_cast<float>(i % 1001 + communicator.rank());
    }
    const CommBuffer whole = CommBuffer::Of(absl::MakeSpan(numbers));
    const CommBuffer own = communicator.Block(whole, communicator.rank());
    ASSERT_TRUE(
        communicator
            .ReduceScatter({.send = whole, .receive = own}, ReduceOp::kSum, {})
            .ok());
    ASSERT_TRUE(
        communicator.AllGather({.send = own, .receive = whole}, {}).ok());
    for (int64_t i = 0; i < kManyPieces; ++i) {
      ASSERT_EQ(numbers[i], static_cast<float>(6 * (i % 1001) + 15)) << i;
    }
  });
}

TEST(Levels, ScattersAndGathersManyPieces) {
  ExpectScattersAndGathers(CreateInOneProcess);
  ExpectScattersAndGathers(CreateInPieces);
}

TEST(Levels, RowsAreNotCut) {
  constexpr int64_t kRow = 7;
  constexpr int64_t kRows = 27;  // of 6 ranks: some have one more
  Together(Over(CreateInOneProcess, 6), [](Communicator& communicator) {
    std::vector<float> numbers = NumbersOf(0, kRow * kRows);
    const CommBuffer whole = CommBuffer::Of(absl::MakeSpan(numbers));
    std::vector<float> gathered(kRow * kRows);
    const CommBuffer all = CommBuffer::Of(absl::MakeSpan(gathered));
    const CommBuffer own = communicator.Block(whole, communicator.rank(), kRow);
    ASSERT_EQ(own.elements % kRow, 0);
    ASSERT_TRUE(
        communicator
            .AllGather({.send = own, .receive = all, .row_elements = kRow}, {})
            .ok());
    EXPECT_EQ(gathered, numbers);
  });
}

absl::StatusOr<std::unique_ptr<Communicator>> CreateOverSockets(
    const CommunicatorSeat& seat) {
  return CreateOver({"gloo", {"gloo"}}, seat);
}

std::vector<std::vector<float>> SumsBy(const RanksOptions& options,
                                       int64_t size) {
  std::vector<std::vector<float>> by_rank(options.ranks);
  Together(options, [&](Communicator& communicator) {
    std::vector<float> numbers = NumbersOf(communicator.rank(), size);
    ASSERT_TRUE(communicator
                    .AllReduce(CommBuffer::Of(absl::MakeSpan(numbers)),
                               ReduceOp::kSum, {})
                    .ok());
    by_rank[communicator.rank()] = numbers;
  });
  return by_rank;
}

// The order of sums is that of the levels, whatever carries them: also where
// three of a host meet over sockets, as one of them has moved.
TEST(Levels, HaveTheSameBitsOverAnyBackend) {
  for (const int ranks : {4, 6}) {
    for (const int64_t size : {5, 70'001}) {
      const auto sums = SumsBy(Over(CreateInOneProcess, ranks), size);
      for (const auto& numbers : sums) EXPECT_EQ(numbers, sums[0]);
      EXPECT_EQ(SumsBy(Over(CreateAcrossHosts, ranks), size), sums);
      EXPECT_EQ(SumsBy(Over(CreateOverSockets, ranks), size), sums);
      const int on_host = ranks / 2;
      for (int64_t i = 0; i < size; ++i) {
        float of_host[2];
        for (int host = 0; host < 2; ++host) {
          of_host[host] = NumberOf(host * on_host, i);
          for (int m = 1; m < on_host; ++m) {
            of_host[host] += NumberOf(host * on_host + m, i);
          }
        }
        ASSERT_EQ(sums[0][i], of_host[0] + of_host[1]) << i;
      }
    }
  }
}

// Where each level sums in order, a cut does not change what is added to what.
TEST(Levels, PiecesKeepTheBitsOfSumsInOrder) {
  for (const int ranks : {4, 6, 8}) {
    for (const int64_t size : {3, 5, 12, 1003, 70'001}) {
      const auto whole = SumsBy(Over(CreateInOneProcess, ranks), size);
      EXPECT_EQ(SumsBy(Over(CreateInPieces, ranks), size), whole) << size;
    }
  }
  const auto whole = SumsBy(Over(CreateAcrossHosts, 4), 70'001);
  EXPECT_EQ(SumsBy(Over(CreateAcrossHostsInPieces, 4), 70'001), whole);
}

// Over rings, too, of which the cut decides which rank begins a sum.
TEST(Levels, PiecesHaveTheSameBitsOnAllRanksAndInAllRuns) {
  const RanksOptions options = Over(
      [](const CommunicatorSeat& seat) {
        return CreateCommunicator(
            GroupOver({2, 4}, {"gloo", {"gloo"}}, kPieces), 0, seat);
      },
      8);
  const auto first = SumsBy(options, 700'001);
  for (const auto& numbers : first) EXPECT_EQ(numbers, first[0]);
  for (int run = 0; run < 3; ++run) EXPECT_EQ(SumsBy(options, 700'001), first);
}

void ExpectReducesHaveTheBitsOfAllReduces(Create create) {
  constexpr int64_t kSize = 1003;
  for (const int ranks : {4, 6, 8}) {
    Together(Over(create, ranks), [&](Communicator& communicator) {
      std::vector<float> all = NumbersOf(communicator.rank(), kSize);
      ASSERT_TRUE(communicator
                      .AllReduce(CommBuffer::Of(absl::MakeSpan(all)),
                                 ReduceOp::kSum, {})
                      .ok());
      for (int root = 0; root < ranks; ++root) {
        std::vector<float> sum = NumbersOf(communicator.rank(), kSize);
        ASSERT_TRUE(communicator
                        .Reduce(CommBuffer::Of(absl::MakeSpan(sum)), root,
                                ReduceOp::kSum, {})
                        .ok());
        if (communicator.rank() == root) EXPECT_EQ(sum, all) << root;
      }
    });
  }
}

TEST(Levels, AReduceHasTheBitsOfAnAllReduce) {
  ExpectReducesHaveTheBitsOfAllReduces(CreateInOneProcess);
  ExpectReducesHaveTheBitsOfAllReduces(CreateInPieces);
}

// Sizes below the way's are flat.
TEST(Levels, EachSizeGoesItsWay) {
  std::atomic<int> flat = 0;
  RanksOptions options = Over(
      [](const CommunicatorSeat& seat) {
        Group group = GroupOver({2, 2}, {"in_process", {"in_process"}});
        for (Group::Way& way : *group.mutable_ways()) way.set_bytes_min(4000);
        return CreateCommunicator(group, 0, seat);
      },
      4);
  Together(options, [&](Communicator& communicator) {
    for (const int64_t size : {999, 1000}) {
      std::vector<float> numbers = NumbersOf(communicator.rank(), size);
      ASSERT_TRUE(communicator
                      .AllReduce(CommBuffer::Of(absl::MakeSpan(numbers)),
                                 ReduceOp::kSum, {})
                      .ok());
      for (int64_t i = 0; i < size; ++i) {
        const float one_by_one =
            NumberOf(0, i) + NumberOf(1, i) + NumberOf(2, i) + NumberOf(3, i);
        const float by_level = (NumberOf(0, i) + NumberOf(1, i)) +
                               (NumberOf(2, i) + NumberOf(3, i));
        ASSERT_EQ(numbers[i], size < 1000 ? one_by_one : by_level);
        if (one_by_one != by_level) ++flat;
      }
    }
  });
  EXPECT_GT(flat, 0) << "the two orders cannot be told apart";
}

// What a message says that is not of this build, or hostile.
absl::Status JoinStatus(const Group& group) {
  InMemoryStore store;
  return CreateCommunicator(group, 0, TestSeat(4, 0, &store)).status();
}

TEST(Levels, RefusesWaysThatDoNotArrive) {
  const Backends backends = {"in_process", {"in_process"}};
  Group group = GroupOver({2, 2}, backends);
  group.mutable_levels(1)->set_size(3);
  EXPECT_TRUE(Tells(JoinStatus(group), absl::StatusCode::kInvalidArgument,
                    {"test-group", "must be of one build"}));
  group = GroupOver({2, 2}, backends);
  group.mutable_ways(0)->mutable_steps(0)->set_level(9);
  EXPECT_TRUE(Tells(JoinStatus(group), absl::StatusCode::kInvalidArgument,
                    {"level 9 is none of 2"}));
  group = GroupOver({2, 2}, backends);
  group.mutable_ways(0)->mutable_steps()->RemoveLast();
  EXPECT_TRUE(Tells(JoinStatus(group), absl::StatusCode::kInvalidArgument,
                    {"has pieces at the end"}));
}

TEST(Levels, RefusesPiecesThatAreNone) {
  for (const int pieces : {-1, kWayPiecesMax + 1, 1 << 30}) {
    EXPECT_TRUE(Tells(
        JoinStatus(GroupOver({2, 2}, {"in_process", {"in_process"}}, pieces)),
        absl::StatusCode::kInvalidArgument,
        {absl::StrCat("cut into ", pieces, " pieces")}));
  }
}

TEST(Levels, RefusesBackendsThatAreNotOfHostMemory) {
  for (const char* backend : {"nccl", "", "pigeon"}) {
    EXPECT_TRUE(Tells(JoinStatus(GroupOver({2, 2}, {"in_process", {backend}})),
                      absl::StatusCode::kInvalidArgument,
                      {"test-group", absl::StrCat("\"", backend, "\"")}));
  }
}

}  // namespace
}  // namespace troupe
