#include "tests/worker/collective/communicator_failure_contract.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/worker/collective/tells.h"

namespace troupe {

namespace {

constexpr absl::Duration kShort = absl::Milliseconds(250);
// Longer than any test: a rank that waits so long was not woken.
constexpr absl::Duration kLong = absl::Seconds(100);

std::string RankWords(int index) {
  return absl::StrCat("rank ", GlobalRank(index), " ");
}

absl::Status AllReduce(Communicator& communicator, int64_t size,
                       absl::Duration timeout) {
  std::vector<float> values(size, 1.0f);
  return communicator.AllReduce(
      CommBuffer::Of(absl::MakeSpan(values)), ReduceOp::kSum,
      {.name = "gradients of block.3", .timeout = timeout});
}

// Direct exchange and ring.
const int64_t kSizes[] = {10, 200'000};

// How long members wait for one that does not come: several times what all of
// them needed for the same when it came. Those that come are never late then,
// however busy the machine is.
class Patience {
 public:
  void Add(absl::Duration needed) {
    const absl::MutexLock lock(&mutex_);
    needed_ = std::max(needed_, needed);
  }
  absl::Duration Enough() {
    const absl::MutexLock lock(&mutex_);
    return std::max(kShort, 8 * needed_);
  }

 private:
  absl::Mutex mutex_;
  absl::Duration needed_;
};

}  // namespace

TEST_P(CommunicatorFailureContract, NamesThePeerThatDoesNotCome) {
  for (const int64_t size : kSizes) {
    for (const int missing : {0, GetParam().ranks - 1}) {
      absl::BlockingCounter failed(GetParam().ranks - 1);
      Patience patience;
      Together(GetParam(), [&](Communicator& communicator) {
        ASSERT_EQ(communicator.Barrier({}), absl::OkStatus());
        const absl::Time begin = absl::Now();
        EXPECT_EQ(AllReduce(communicator, size, kLong), absl::OkStatus());
        patience.Add(absl::Now() - begin);
        ASSERT_EQ(communicator.Barrier({}), absl::OkStatus());
        if (communicator.rank() == missing) {
          failed.Wait();
          EXPECT_FALSE(AllReduce(communicator, size, kLong).ok());
          return;
        }
        const absl::Status status = AllReduce(
            communicator, size, GetParam().patience * patience.Enough());
        EXPECT_TRUE(
            Tells(status, absl::StatusCode::kDeadlineExceeded,
                  {"all-reduce of gradients of block.3",
                   absl::StrCat(RankWords(missing), "did not come"),
                   absl::StrCat(RankWords(communicator.rank()), "waited ")}));
        failed.DecrementCount();
        // Broken: the first error comes back at once, whatever is asked.
        EXPECT_EQ(communicator.Barrier({.timeout = kLong}), status);
      });
    }
  }
}

TEST_P(CommunicatorFailureContract, NamesThePeerThatLeft) {
  for (const int64_t size : kSizes) {
    const int gone = GetParam().ranks / 2;
    absl::BlockingCounter met(GetParam().ranks);
    TogetherOwning(GetParam(), [&](std::unique_ptr<Communicator> mine) {
      EXPECT_EQ(mine->Barrier({}), absl::OkStatus());
      met.DecrementCount();
      if (mine->rank() == gone) {
        met.Wait();
        return;  // destroys it
      }
      EXPECT_TRUE(Tells(
          AllReduce(*mine, size, kLong), absl::StatusCode::kUnavailable,
          {"all-reduce of gradients of block.3", RankWords(gone), "closed"}));
    });
  }
}

TEST_P(CommunicatorFailureContract, LeavingHarmsNobodyWhoDoesNotNeedThePeer) {
  if (GetParam().ranks < 3) return;
  absl::Notification left;
  TogetherOwning(GetParam(), [&](std::unique_ptr<Communicator> mine) {
    ASSERT_EQ(mine->Barrier({}), absl::OkStatus());
    if (mine->rank() == 2) {
      mine = nullptr;
      left.Notify();
      return;
    }
    left.WaitForNotification();
    if (mine->rank() > 2) return;
    std::vector<float> values(200'000, 3.0f);
    const CommBuffer data = CommBuffer::Of(absl::MakeSpan(values));
    const absl::Status status = mine->rank() == 0
                                    ? mine->Send(data, 1, {.timeout = kLong})
                                    : mine->Recv(data, 0, {.timeout = kLong});
    EXPECT_TRUE(status.ok()) << status;
  });
}

TEST_P(CommunicatorFailureContract, ReceiverNamesTheSilentSender) {
  absl::Notification failed;
  Together(GetParam(), [&](Communicator& communicator) {
    if (communicator.rank() != 0) {
      failed.WaitForNotification();
      return;
    }
    std::vector<char> bytes(100);
    EXPECT_TRUE(
        Tells(communicator.Recv(CommBuffer::Of(absl::MakeSpan(bytes)), 1,
                                {.name = "activations", .timeout = kShort}),
              absl::StatusCode::kDeadlineExceeded,
              {"recv of activations", RankWords(1)}));
    failed.Notify();
  });
}

TEST_P(CommunicatorFailureContract, SenderNamesTheAbsentReceiver) {
  absl::Notification failed;
  Together(GetParam(), [&](Communicator& communicator) {
    if (communicator.rank() != 0) {
      failed.WaitForNotification();
      return;
    }
    std::vector<char> bytes(10'000'000);  // more than sockets buffer
    EXPECT_TRUE(
        Tells(communicator.Send(CommBuffer::Of(absl::MakeSpan(bytes)), 1,
                                {.name = "activations", .timeout = kShort}),
              absl::StatusCode::kDeadlineExceeded,
              {"send of activations", RankWords(1)}));
    failed.Notify();
  });
}

TEST_P(CommunicatorFailureContract, AShiftNamesThePeerThatDoesNotCome) {
  absl::Notification failed;
  Together(GetParam(), [&](Communicator& communicator) {
    if (communicator.rank() != 0) {
      failed.WaitForNotification();
      return;
    }
    std::vector<char> out(10'000'000), in(10'000'000);
    const int last = communicator.size() - 1;
    const absl::Status status =
        communicator.Shift({.send = CommBuffer::Of(absl::MakeSpan(out)),
                            .to = last,
                            .receive = CommBuffer::Of(absl::MakeSpan(in)),
                            .from = last},
                           {.name = "keys", .timeout = kShort});
    EXPECT_TRUE(Tells(status, absl::StatusCode::kDeadlineExceeded,
                      {"shift of keys", RankWords(last)}));
    failed.Notify();
  });
}

TEST_P(CommunicatorFailureContract, AbortFreesTheCallHereAndAtThePeers) {
  for (const int64_t size : kSizes) {
    absl::BlockingCounter met(GetParam().ranks);
    absl::BlockingCounter failed(GetParam().ranks - 1);
    Together(GetParam(), [&](Communicator& communicator) {
      EXPECT_EQ(communicator.Barrier({}), absl::OkStatus());
      met.DecrementCount();  // an abort would fail those still in the barrier
      if (communicator.rank() == communicator.size() - 1) {
        failed.Wait();  // never enters
        return;
      }
      std::thread aborter;
      if (communicator.rank() == 0) {
        aborter = std::thread([&] {
          met.Wait();
          communicator.Abort(absl::InternalError("out of paper"));
        });
      }
      const absl::Status status = AllReduce(communicator, size, kLong);
      if (communicator.rank() == 0) {
        EXPECT_TRUE(Tells(status, absl::StatusCode::kCancelled,
                          {"aborted: out of paper"}));
        aborter.join();
      } else {
        EXPECT_TRUE(
            Tells(status, absl::StatusCode::kUnavailable,
                  {"all-reduce", RankWords(0), "aborted: out of paper"}));
      }
      failed.DecrementCount();
    });
  }
}

TEST_P(CommunicatorFailureContract, AbortBetweenCallsFailsTheNextOnes) {
  absl::BlockingCounter met(GetParam().ranks);
  Together(GetParam(), [&](Communicator& communicator) {
    EXPECT_EQ(communicator.Barrier({}), absl::OkStatus());
    met.DecrementCount();
    if (communicator.rank() == 0) {
      met.Wait();
      communicator.Abort(absl::InternalError("out of paper"));
      communicator.Abort(absl::InternalError("out of ink"));
      EXPECT_TRUE(Tells(AllReduce(communicator, 10, kLong),
                        absl::StatusCode::kCancelled, {"out of paper"}));
    } else {
      EXPECT_TRUE(Tells(AllReduce(communicator, 10, kLong),
                        absl::StatusCode::kUnavailable,
                        {RankWords(0), "out of paper"}));
    }
  });
}

TEST_P(CommunicatorFailureContract, PeerThatLeavesInTheMiddleOfALongRun) {
  const int gone = GetParam().ranks - 1;
  absl::BlockingCounter ran(GetParam().ranks);
  TogetherOwning(GetParam(), [&](std::unique_ptr<Communicator> mine) {
    for (int round = 0; round < 10; ++round) {
      EXPECT_EQ(AllReduce(*mine, 50'000, kLong), absl::OkStatus());
    }
    ran.DecrementCount();
    if (mine->rank() == gone) {
      // A rank that is already in the next one, and fails, would fail others
      // that are not.
      ran.Wait();
      return;
    }
    absl::Status status;
    while (status.ok()) status = AllReduce(*mine, 50'000, kLong);
    EXPECT_TRUE(Tells(status, absl::StatusCode::kUnavailable,
                      {"all-reduce", RankWords(gone)}));
  });
}

TEST_P(CommunicatorFailureContract, JoiningNamesTheMemberThatDoesNotCome) {
  const RanksOptions options = GetParam();
  Patience patience;
  const absl::Time begin = absl::Now();
  Together(options, [](Communicator& communicator) {});
  patience.Add(absl::Now() - begin);
  for (const int missing : {0, options.ranks - 1}) {
    InMemoryStore store;
    OnThreads(options.ranks, [&](int index) {
      if (index == missing) return;
      CommunicatorSeat seat = TestSeat(options.ranks, index, &store);
      const std::unique_ptr<Device> device = SeatDevice(options, index, seat);
      seat.timeout = patience.Enough();
      EXPECT_TRUE(Tells(CreateFor(options, seat).status(),
                        absl::StatusCode::kDeadlineExceeded,
                        {RankWords(missing)}));
    });
  }
}

TEST_P(CommunicatorFailureContract, AbortOfTheStoreEndsJoining) {
  const RanksOptions options = GetParam();
  InMemoryStore store;
  store.Abort(absl::CancelledError("the job was cancelled"));
  OnThreads(options.ranks, [&](int index) {
    CommunicatorSeat seat = TestSeat(options.ranks, index, &store);
    const std::unique_ptr<Device> device = SeatDevice(options, index, seat);
    EXPECT_TRUE(Tells(CreateFor(options, seat).status(),
                      absl::StatusCode::kCancelled, {"the job was cancelled"}));
  });
}

}  // namespace troupe
