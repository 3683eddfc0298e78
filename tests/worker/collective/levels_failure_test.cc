// Which rank a communicator over levels blames, and what ends when it fails.
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/worker/collective/communicator_contract.h"
#include "tests/worker/collective/communicator_failure_contract.h"
#include "tests/worker/collective/level_groups.h"
#include "tests/worker/collective/mortal_rank.h"
#include "tests/worker/collective/operation_failure_contract.h"
#include "tests/worker/collective/ranks.h"
#include "tests/worker/collective/tells.h"
#include "worker/collective/create_communicator.h"

namespace troupe {
namespace {

INSTANTIATE_TEST_SUITE_P(InProcess, CommunicatorFailureContract,
                         testing::Values(Over(CreateInOneProcess, 2),
                                         Over(CreateInOneProcess, 4),
                                         Over(CreateInOneProcess, 6)),
                         RanksName);
INSTANTIATE_TEST_SUITE_P(AcrossHosts, CommunicatorFailureContract,
                         testing::Values(Over(CreateAcrossHosts, 4),
                                         Over(CreateAcrossHosts, 6)),
                         RanksName);
INSTANTIATE_TEST_SUITE_P(InPieces, CommunicatorFailureContract,
                         testing::Values(Over(CreateInPieces, 4),
                                         Over(CreateInPieces, 6)),
                         RanksName);
INSTANTIATE_TEST_SUITE_P(AcrossHostsInPieces, CommunicatorFailureContract,
                         testing::Values(Over(CreateAcrossHostsInPieces, 4)),
                         RanksName);
INSTANTIATE_TEST_SUITE_P(InPieces, OperationFailureContract,
                         testing::Values(Over(CreateInPieces, 4)), RanksName);
INSTANTIATE_TEST_SUITE_P(UpATree, OperationFailureContract,
                         testing::Values(Over(CreateUpATree, 4)), RanksName);
INSTANTIATE_TEST_SUITE_P(InProcess, OperationFailureContract,
                         testing::Values(Over(CreateInOneProcess, 3)),
                         RanksName);
INSTANTIATE_TEST_SUITE_P(AcrossHosts, OperationFailureContract,
                         testing::Values(Over(CreateAcrossHosts, 3)),
                         RanksName);

// A rank that dies is named by all, not those that waited for it on another
// level.
TEST(LevelsFailure, NamesThePeerThatDiedOnWhateverLevel) {
  for (const Create create : {CreateInOneProcess, CreateAcrossHosts,
                              CreateInPieces, CreateAcrossHostsInPieces}) {
    for (int dead = 0; dead < 6; ++dead) {
      absl::BlockingCounter met(6);
      TogetherOwning(Over(create, 6), [&](std::unique_ptr<Communicator> mine) {
        ASSERT_EQ(mine->Barrier({}), absl::OkStatus());
        met.DecrementCount();
        if (mine->rank() == dead) {
          met.Wait();
          return;  // destroys it
        }
        std::vector<float> numbers(100'000, 1.0f);
        const absl::Status status = mine->AllReduce(
            CommBuffer::Of(absl::MakeSpan(numbers)), ReduceOp::kSum,
            {.name = "gradients", .timeout = absl::Seconds(100)});
        EXPECT_TRUE(Tells(status, absl::StatusCode::kUnavailable,
                          {"group test-group: all-reduce of gradients",
                           absl::StrCat("rank ", GlobalRank(dead), " ")}));
        EXPECT_EQ(MissingRank(status), GlobalRank(dead));
      });
    }
  }
}

void ExpectNamesThePeerThatDoesNotCome(Create create) {
  for (const int missing : {0, 3, 6}) {
    absl::BlockingCounter over(7);
    Together(Over(create, 8), [&](Communicator& communicator) {
      ASSERT_EQ(communicator.Barrier({}), absl::OkStatus());
      if (communicator.rank() == missing) return over.Wait();
      std::vector<float> numbers(1000, 1.0f);
      const absl::Status status =
          communicator.AllReduce(CommBuffer::Of(absl::MakeSpan(numbers)),
                                 ReduceOp::kSum, {.timeout = absl::Seconds(2)});
      EXPECT_TRUE(Tells(status, absl::StatusCode::kDeadlineExceeded,
                        {absl::StrCat("rank ", GlobalRank(missing), " ")}));
      over.DecrementCount();
    });
  }
}

TEST(LevelsFailure, NamesThePeerThatDoesNotComeOnWhateverLevel) {
  ExpectNamesThePeerThatDoesNotCome(CreateInOneProcess);
  ExpectNamesThePeerThatDoesNotCome(CreateInPieces);
}

// Rank 3 comes when the steps are over, but not yet the operation. Rank 0 has
// missed rank 2 on the level between hosts, which only waited for rank 3.
void ExpectBlamesNobodyWhereAllCameLate(Create create) {
  constexpr absl::Duration kTime = absl::Seconds(6);
  absl::BlockingCounter entered(3);
  Together(Over(create, 4), [&](Communicator& communicator) {
    ASSERT_EQ(communicator.Barrier({}), absl::OkStatus());
    const bool is_late = communicator.rank() == 3;
    if (is_late) {
      entered.Wait();
      absl::SleepFor(kTime * 0.8);
    } else {
      entered.DecrementCount();
    }
    std::vector<float> numbers(1000, 1.0f);
    const absl::Status status =
        communicator.AllReduce(CommBuffer::Of(absl::MakeSpan(numbers)),
                               ReduceOp::kSum, {.timeout = kTime});
    if (is_late) {
      EXPECT_FALSE(status.ok());
      return;
    }
    EXPECT_TRUE(Tells(status, absl::StatusCode::kDeadlineExceeded,
                      {"all members came, but some too late"}));
    EXPECT_EQ(MissingRank(status), absl::nullopt) << status;
  });
}

TEST(LevelsFailure, BlamesNobodyWhereAllCameLate) {
  ExpectBlamesNobodyWhereAllCameLate(CreateAcrossHosts);
  ExpectBlamesNobodyWhereAllCameLate(CreateAcrossHostsInPieces);
}

Group AcrossHostsInPieces() {
  return GroupOver(SizesFor(4), {"gloo", {"shared_memory", "gloo"}}, kPieces);
}

// In the midst of the pieces: the second one is on its way between hosts when
// the rank that is to bring it there dies. Within the host the first one has
// come back, and the next three have gone.
TEST(LevelsFailure, NamesThePeerThatDiesAmongPieces) {
  constexpr int kDying = 3;
  const RanksOptions options = Over(
      [](const CommunicatorSeat& seat) {
        const Group group = AcrossHostsInPieces();
        return seat.rank == kDying
                   ? CreateMortal(group, {.call = 1, .calls_below = 5}, seat)
                   : CreateCommunicator(group, 0, seat);
      },
      4);
  Together(options, [](Communicator& communicator) {
    std::vector<float> numbers(1'000'000, 1.0f);
    const absl::Time begin = absl::Now();
    const absl::Status status =
        communicator.AllReduce(CommBuffer::Of(absl::MakeSpan(numbers)),
                               ReduceOp::kSum, {.timeout = absl::Seconds(100)});
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    if (communicator.rank() == kDying) return;
    EXPECT_EQ(MissingRank(status), GlobalRank(kDying)) << status;
    EXPECT_LT(absl::Now() - begin, absl::Seconds(60)) << "it was not woken";
  });
}

}  // namespace
}  // namespace troupe
