#include "worker/collective/enqueued/enqueued_communicator.h"

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "tests/ops/split_memory_device.h"
#include "tests/worker/collective/communicator_contract.h"
#include "tests/worker/collective/communicator_failure_contract.h"
#include "tests/worker/collective/enqueued/late_transport.h"
#include "tests/worker/collective/operation_failure_contract.h"
#include "tests/worker/collective/tells.h"
#include "worker/collective/watch.h"

namespace troupe {
namespace {

std::unique_ptr<Device> NewSplitDevice(int) {
  return std::make_unique<SplitMemoryDevice>(CpuDeviceOptions{.threads = 1});
}

RanksOptions Late(int ranks, bool meet) {
  return {.backend = "late",
          .ranks = ranks,
          .create = CreateLate,
          .meet = meet,
          .new_device = NewSplitDevice};
}

INSTANTIATE_TEST_SUITE_P(Met, CommunicatorContract,
                         testing::Values(Late(1, true), Late(3, true)),
                         RanksName);
INSTANTIATE_TEST_SUITE_P(Unmet, CommunicatorContract,
                         testing::Values(Late(2, false), Late(4, false)),
                         RanksName);
INSTANTIATE_TEST_SUITE_P(Met, CommunicatorFailureContract,
                         testing::Values(Late(3, true)), RanksName);
INSTANTIATE_TEST_SUITE_P(Unmet, CommunicatorFailureContract,
                         testing::Values(Late(2, false), Late(3, false)),
                         RanksName);
INSTANTIATE_TEST_SUITE_P(Met, OperationFailureContract,
                         testing::Values(Late(3, true)), RanksName);
INSTANTIATE_TEST_SUITE_P(Unmet, OperationFailureContract,
                         testing::Values(Late(3, false)), RanksName);

// A rank with its device, a number there, and what it calls.
struct Rank {
  Communicator& communicator;
  SplitMemoryDevice& device;
  CommBuffer number;

  absl::Status Add(absl::Duration timeout) {
    return communicator.AllReduce(
        number, ReduceOp::kSum,
        {.name = "a number", .timeout = timeout, .meet = false});
  }
  absl::Status Outcome() { return communicator.Outcome(device.Synchronize()); }
  float Read() {
    float value = 0;
    device.CopyToHost(&value, number.data, sizeof(value));
    EXPECT_TRUE(device.Synchronize().ok());
    return value;
  }
};

// Members whose numbers are 1.
void OnRanks(int ranks,
             absl::StatusOr<std::unique_ptr<Communicator>> (*create)(
                 const CommunicatorSeat&),
             const std::function<void(Rank)>& body) {
  InMemoryStore store;
  OnThreads(ranks, [&](int index) {
    SplitMemoryDevice device({.threads = 1});
    CommunicatorSeat seat = TestSeat(ranks, index, &store);
    seat.device = &device;
    auto communicator = create(seat);
    ASSERT_TRUE(communicator.ok()) << communicator.status();
    void* const memory = device.Allocate(sizeof(float)).value();
    const float one = 1;
    device.CopyFromHost(memory, &one, sizeof(one));
    ASSERT_TRUE(device.Synchronize().ok());
    body({**communicator, device, {memory, 1, DType::kF32}});
    communicator->reset();
    device.Free(memory);
  });
}

constexpr absl::Duration kLong = absl::Seconds(100);

TEST(EnqueuedCommunicatorTest, CallsReturnBeforeTheirPeersCome) {
  absl::BlockingCounter enqueued(1);
  OnRanks(2, CreateLate, [&](Rank rank) {
    if (rank.communicator.rank() == 1) enqueued.Wait();
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(rank.Add(kLong).ok());
    if (rank.communicator.rank() == 0) enqueued.DecrementCount();
    EXPECT_TRUE(rank.Outcome().ok());
    EXPECT_EQ(rank.Read(), 1024);
    EXPECT_EQ(rank.communicator.sent_bytes(), 40u);
  });
}

// What the rank itself still computes is no peer's fault.
TEST(EnqueuedCommunicatorTest, TimeCountsFromWhenTheQueueGetsThere) {
  OnRanks(2, CreateLate, [&](Rank rank) {
    absl::Notification computed;
    rank.device.Enqueue([&] { computed.WaitForNotification(); });
    constexpr absl::Duration kShort = absl::Milliseconds(200);
    EXPECT_TRUE(rank.Add(kShort).ok());
    absl::SleepFor(2 * kShort);
    computed.Notify();
    const absl::Status outcome = rank.Outcome();
    EXPECT_TRUE(outcome.ok()) << outcome;
    EXPECT_EQ(rank.Read(), 2);
  });
}

// A rank that noticed nothing is told by the watch; those behind it are told,
// too.
TEST(EnqueuedCommunicatorTest, ADeadlineNamesWhoDidNotComeAndFreesTheQueue) {
  absl::BlockingCounter over(2);
  OnRanks(3, CreateLateAndDeaf, [&](Rank rank) {
    if (rank.communicator.rank() == 2) return over.Wait();
    EXPECT_TRUE(rank.Add(absl::Milliseconds(200)).ok());
    EXPECT_TRUE(rank.Add(kLong).ok());
    EXPECT_TRUE(Tells(rank.Outcome(), absl::StatusCode::kDeadlineExceeded,
                      {"all-reduce of a number", "rank 13 did not come"}));
    EXPECT_EQ(MissingRank(rank.Outcome()), 13);
    EXPECT_EQ(MissingRank(rank.Add(kLong)), 13);
    over.DecrementCount();
  });
}

// Two that wait for the third do not blame each other, though one began later.
TEST(EnqueuedCommunicatorTest, WhoBeganLaterIsNotToBlame) {
  absl::BlockingCounter over(2);
  OnRanks(3, CreateLateAndDeaf, [&](Rank rank) {
    const int index = rank.communicator.rank();
    if (index == 2) return over.Wait();
    if (index == 1) absl::SleepFor(absl::Milliseconds(300));
    EXPECT_TRUE(rank.Add(absl::Milliseconds(600)).ok());
    EXPECT_EQ(MissingRank(rank.Outcome()), 13);
    over.DecrementCount();
  });
}

TEST(EnqueuedCommunicatorTest, AMemberThatIsGoneIsToBlameForAnError) {
  OnRanks(3, CreateLate, [&](Rank rank) {
    if (rank.communicator.rank() == 2) return;  // destroys it
    // Noticed before the second is enqueued, or not.
    const bool enqueued = rank.Add(kLong).ok() && rank.Add(kLong).ok();
    const absl::Status outcome = enqueued ? rank.Outcome() : rank.Add(kLong);
    EXPECT_TRUE(absl::IsUnavailable(outcome)) << outcome;
    EXPECT_EQ(MissingRank(outcome), 13) << outcome;
  });
}

TEST(EnqueuedCommunicatorTest, AnAbortReturnsAtOnceAndFreesTheQueue) {
  absl::Notification over;
  OnRanks(2, CreateLateAndDeaf, [&](Rank rank) {
    if (rank.communicator.rank() == 1) return over.WaitForNotification();
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(rank.Add(kLong).ok());
    std::thread other(
        [&] { rank.communicator.Abort(absl::CancelledError("no more")); });
    EXPECT_TRUE(Tells(rank.Outcome(), absl::StatusCode::kCancelled,
                      {"aborted: no more"}));
    EXPECT_TRUE(absl::IsCancelled(rank.Add(kLong)));
    other.join();
    over.Notify();
  });
}

// Two communicators of a rank, each in a queue of its own: no abort returns
// before both queues go on, and the second one's time would not pass for long.
// Its other member hears of it.
TEST(EnqueuedCommunicatorTest, OneThatFailsEndsAllOfItsRank) {
  InMemoryStore store;
  absl::Notification over, heard;
  OnThreads(2, [&](int index) {
    SplitMemoryDevice device({.threads = 1});
    const auto watch = std::make_shared<Watch>();
    std::vector<std::unique_ptr<Communicator>> communicators;
    for (const char* const name : {"first", "second"}) {
      CommunicatorSeat seat = TestSeat(2, index, &store);
      absl::StrAppend(&seat.group.name, "-", name);
      seat.device = &device;
      seat.watch = watch;
      communicators.push_back(CreateLateAndDeaf(seat).value());
    }
    if (index == 1) {
      EXPECT_TRUE(Tells(communicators[1]->Barrier({.timeout = kLong}),
                        absl::StatusCode::kUnavailable, {"rank 7", "rank 10"}));
      heard.Notify();
      return over.WaitForNotification();
    }
    void* const memory = device.Allocate(2 * sizeof(float)).value();
    const CommBuffer numbers = {memory, 2, DType::kF32};
    absl::Notification second_waits;
    OnThreads(2, [&](int which) {
      Rank rank = {*communicators[which], device,
                   numbers.Slice(which, which + 1)};
      if (which == 0) second_waits.WaitForNotification();
      EXPECT_TRUE(rank.Add(which == 0 ? absl::Milliseconds(200) : kLong).ok());
      if (which == 1) second_waits.Notify();
      const absl::Status outcome = rank.Outcome();
      EXPECT_TRUE(Tells(outcome, absl::StatusCode::kDeadlineExceeded,
                        {"group test-group-first", "rank 10 did not come"}));
      EXPECT_EQ(MissingRank(outcome), 10);
      EXPECT_EQ(MissingRank(rank.Add(kLong)), 10);
    });
    heard.WaitForNotification();
    communicators.clear();
    device.Free(memory);
    over.Notify();
  });
}

// The abort waits for a queue that has nothing to do with it.
TEST(EnqueuedCommunicatorTest, WhatHasFailedIsKnownBeforeItsAbortReturns) {
  absl::Notification over;
  OnRanks(2, CreateLateAndDeaf, [&](Rank rank) {
    if (rank.communicator.rank() == 1) return over.WaitForNotification();
    absl::Notification queued, computed;
    std::thread other([&] {
      rank.device.Enqueue([&] { computed.WaitForNotification(); });
      queued.Notify();
      EXPECT_TRUE(rank.device.Synchronize().ok());
    });
    queued.WaitForNotification();
    EXPECT_TRUE(rank.Add(absl::Milliseconds(200)).ok());
    EXPECT_EQ(MissingRank(rank.Outcome()), 10);
    computed.Notify();
    other.join();
    over.Notify();
  });
}

// The device's own error is the reason, where nobody is gone.
TEST(EnqueuedCommunicatorTest, ADeviceThatFailsIsNobodysFault) {
  absl::Notification over;
  OnRanks(2, CreateLateAndDeaf, [&](Rank rank) {
    if (rank.communicator.rank() == 1) return over.WaitForNotification();
    const absl::Status broken = absl::InternalError("an illegal address");
    rank.device.Fail(broken);
    EXPECT_TRUE(rank.Add(absl::Seconds(1)).ok());
    EXPECT_EQ(rank.Outcome(), broken);
    over.Notify();
  });
}

}  // namespace
}  // namespace troupe
