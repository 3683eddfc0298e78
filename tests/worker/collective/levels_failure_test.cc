// Whom a communicator over levels blames, and what ends when it fails.
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/worker/collective/communicator_contract.h"
#include "tests/worker/collective/communicator_failure_contract.h"
#include "tests/worker/collective/level_groups.h"
#include "tests/worker/collective/operation_failure_contract.h"
#include "tests/worker/collective/ranks.h"
#include "tests/worker/collective/tells.h"

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
                         testing::Values(Over(CreateInPieces, 3)), RanksName);
INSTANTIATE_TEST_SUITE_P(InProcess, OperationFailureContract,
                         testing::Values(Over(CreateInOneProcess, 3)),
                         RanksName);
INSTANTIATE_TEST_SUITE_P(AcrossHosts, OperationFailureContract,
                         testing::Values(Over(CreateAcrossHosts, 3)),
                         RanksName);

// Whoever dies is named by all, not those who waited for it on another level.
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

// In the midst of the pieces: one dies when some have arrived.
TEST(LevelsFailure, NamesThePeerThatDiesAmongPieces) {
  TogetherOwning(Over(CreateAcrossHostsInPieces, 4),
                 [](std::unique_ptr<Communicator> mine) {
                   for (int round = 0; round < 3; ++round) {
                     if (round == 2 && mine->rank() == 3)
                       return;  // destroys it
                     std::vector<float> numbers(1'000'000, 1.0f);
                     const absl::Status status = mine->AllReduce(
                         CommBuffer::Of(absl::MakeSpan(numbers)),
                         ReduceOp::kSum, {.timeout = absl::Seconds(100)});
                     if (round < 2) {
                       EXPECT_EQ(status, absl::OkStatus());
                     } else {
                       EXPECT_EQ(MissingRank(status), GlobalRank(3)) << status;
                     }
                   }
                 });
}

// The lane that waits does not keep the caller.
TEST(LevelsFailure, AbortEndsAllLanes) {
  for (const Create create : {CreateInPieces, CreateAcrossHostsInPieces}) {
    absl::BlockingCounter aborted(1);
    Together(Over(create, 4), [&](Communicator& communicator) {
      ASSERT_EQ(communicator.Barrier({}), absl::OkStatus());
      if (communicator.rank() == 3) {
        aborted.Wait();  // never comes
        return;
      }
      std::thread other;
      if (communicator.rank() == 0) {
        other = std::thread([&] {
          communicator.Abort(absl::CancelledError("the job ends"));
          aborted.DecrementCount();
        });
      }
      std::vector<float> numbers(100'000, 1.0f);
      const absl::Status status = communicator.AllReduce(
          CommBuffer::Of(absl::MakeSpan(numbers)), ReduceOp::kSum,
          {.timeout = absl::Seconds(100)});
      EXPECT_FALSE(status.ok());
      if (communicator.rank() == 0) {
        EXPECT_TRUE(absl::IsCancelled(status)) << status;
        other.join();
      }
    });
  }
}

}  // namespace
}  // namespace troupe
