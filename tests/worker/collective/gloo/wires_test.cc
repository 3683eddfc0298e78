// Wires between threads, and between processes that are killed and stopped: the
// children are forked while the test has no threads, and run one rank each.
#include "worker/collective/gloo/wires.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"
#include "tests/worker/collective/gloo/on_wires.h"
#include "tests/worker/collective/gloo/shared_store.h"
#include "tests/worker/collective/ranks.h"
#include "tests/worker/collective/tells.h"
#include "worker/collective/gloo/gloo_communicator.h"

namespace troupe {
namespace {

constexpr absl::Duration kLong = absl::Seconds(100);

absl::Status AllReduce(Communicator& communicator, int64_t size,
                       absl::Duration timeout) {
  std::vector<float> values(size, 1.0f);
  return communicator.AllReduce(CommBuffer::Of(absl::MakeSpan(values)),
                                ReduceOp::kSum,
                                {.name = "gradients", .timeout = timeout});
}

std::unique_ptr<Communicator> Join(int ranks, int index, SharedStore& store) {
  auto communicator = CreateGloo(TestSeat(ranks, index, &store));
  if (!communicator.ok()) {
    ADD_FAILURE() << communicator.status();
    return nullptr;
  }
  return *std::move(communicator);
}

// Forks a process that joins as rank `index` and runs `body`, which does not
// return.
pid_t ForkRank(int ranks, int index, SharedStore& store,
               const std::function<void(Communicator&)>& body) {
  const pid_t child = fork();
  if (child != 0) return child;
  const std::unique_ptr<Communicator> communicator = Join(ranks, index, store);
  if (communicator != nullptr) body(*communicator);
  _exit(1);
}

void Reap(pid_t child) {
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

std::string VictimWords(int ranks) {
  return absl::StrCat("rank ", GlobalRank(ranks - 1), " ");
}

// One thread aborts between two operations of the other, of which the next then
// fails and closes: the peer hears why all the same.
TEST(WiresTest, AnAbortIsHeardWhateverTheNextOperationDoes) {
  for (int round = 0; round < 10; ++round) {
    OnWires(2, [](Wires& wires) {
      if (wires.rank() == 1) {
        char byte = 0;
        const absl::Status status = Operation(wires, [&]() -> absl::Status {
          Wire wire = wires.Attach(&byte, 1);
          RETURN_IF_ERROR(wires.PostRecv(wire, {.peer = 0, .bytes = 1}));
          return wires.WaitRecv(wire);
        });
        EXPECT_TRUE(
            absl::StrContains(status.message(), "aborted: out of paper"))
            << status;
        return;
      }
      absl::Notification working;
      std::thread aborter([&] {
        working.WaitForNotification();
        wires.Abort(absl::InternalError("out of paper"));
      });
      absl::Status status;
      for (int i = 0; status.ok(); ++i) {
        status = Operation(wires, [] { return absl::OkStatus(); });
        if (i == 100) working.Notify();
      }
      aborter.join();
    });
  }
}

TEST(WiresTest, MessagesLandWhereTheyAreAskedTo) {
  OnWires(2, [](Wires& wires) {
    std::vector<char> bytes(10, wires.rank() == 0 ? 'a' : '-');
    const absl::Status status = Operation(wires, [&]() -> absl::Status {
      Wire wire = wires.Attach(bytes.data(), bytes.size());
      for (const size_t offset : {7, 2}) {
        if (wires.rank() == 0) {
          RETURN_IF_ERROR(
              wires.PostSend(wire, {.peer = 1, .offset = offset, .bytes = 2}));
        } else {
          RETURN_IF_ERROR(
              wires.PostRecv(wire, {.peer = 0, .offset = offset, .bytes = 2}));
        }
      }
      RETURN_IF_ERROR(wires.WaitAllSends({&wire, 1}));
      return wires.WaitAllRecvs({&wire, 1});
    });
    ASSERT_TRUE(status.ok()) << status;
    if (wires.rank() == 1) {
      EXPECT_EQ(std::string(bytes.begin(), bytes.end()), "--aa---aa-");
    }
  });
}

TEST(WiresTest, SlotsKeepOperationsApart) {
  OnWires(2, [](Wires& wires) {
    char byte = 0;
    ASSERT_TRUE(
        wires.Begin(SteadyNow() + absl::Milliseconds(200), 5 + wires.rank())
            .ok());
    {
      Wire wire = wires.Attach(&byte, 1);
      absl::Status status = wires.rank() == 0
                                ? wires.PostSend(wire, {.peer = 1, .bytes = 1})
                                : wires.PostRecv(wire, {.peer = 0, .bytes = 1});
      if (status.ok()) {
        status =
            wires.rank() == 0 ? wires.WaitSend(wire) : wires.WaitRecv(wire);
      }
      EXPECT_FALSE(status.ok());
    }
    const Verdict verdict = wires.Close();
    EXPECT_EQ(verdict.code, absl::StatusCode::kDeadlineExceeded);
    EXPECT_EQ(verdict.peer, 1 - wires.rank());
  });
}

TEST(WiresTest, AbortBetweenOperationsRefusesTheNext) {
  OnWires(2, [](Wires& wires) {
    if (wires.rank() == 1) return;
    wires.Abort(absl::InternalError("out of paper"));
    EXPECT_FALSE(wires.Begin(absl::InfiniteFuture(), 1).ok());
    EXPECT_EQ(wires.Close().what, "aborted: out of paper");
  });
}

class KilledProcessTest : public testing::TestWithParam<int> {};

TEST_P(KilledProcessTest, AKilledPeerIsNamedAtOnce) {
  const int ranks = GetParam();
  SharedStore store;
  const pid_t child =
      ForkRank(ranks, ranks - 1, store, [](Communicator& communicator) {
        if (communicator.Barrier({}).ok()) pause();
      });
  absl::BlockingCounter passed(ranks - 1);
  OnThreads(ranks, [&](int index) {
    if (index == ranks - 1) {  // no rank: the killer
      passed.Wait();
      Reap(child);
      return;
    }
    const auto communicator = Join(ranks, index, store);
    ASSERT_NE(communicator, nullptr);
    ASSERT_TRUE(communicator->Barrier({}).ok());
    passed.DecrementCount();
    EXPECT_TRUE(Tells(AllReduce(*communicator, 200'000, kLong),
                      absl::StatusCode::kUnavailable,
                      {"all-reduce of gradients", VictimWords(ranks), "died"}));
  });
}

TEST_P(KilledProcessTest, APeerKilledInTheMiddleOfTransfersIsNamed) {
  const int ranks = GetParam();
  constexpr int64_t kSize = 500'000;
  SharedStore store;
  const pid_t child =
      ForkRank(ranks, ranks - 1, store, [](Communicator& communicator) {
        while (AllReduce(communicator, kSize, kLong).ok()) {
        }
      });
  absl::Notification busy;
  OnThreads(ranks, [&](int index) {
    if (index == ranks - 1) {  // no rank: the killer
      busy.WaitForNotification();
      Reap(child);
      return;
    }
    const auto communicator = Join(ranks, index, store);
    ASSERT_NE(communicator, nullptr);
    absl::Status status;
    for (int round = 0; status.ok(); ++round) {
      if (index == 0 && round == 3) busy.Notify();
      status = AllReduce(*communicator, kSize, kLong);
    }
    EXPECT_TRUE(Tells(status, absl::StatusCode::kUnavailable,
                      {"all-reduce of gradients", VictimWords(ranks), "died"}));
  });
}

TEST_P(KilledProcessTest, AStoppedPeerIsNamedWhenTimeIsUp) {
  const int ranks = GetParam();
  for (const int64_t size : {10, 500'000}) {
    SharedStore store;
    const pid_t child =
        ForkRank(ranks, ranks - 1, store, [size](Communicator& communicator) {
          while (AllReduce(communicator, size, kLong).ok()) {
          }
        });
    absl::Notification busy;
    OnThreads(ranks, [&](int index) {
      if (index == ranks - 1) {
        busy.WaitForNotification();
        kill(child, SIGSTOP);
        return;
      }
      const auto communicator = Join(ranks, index, store);
      ASSERT_NE(communicator, nullptr);
      absl::Status status;
      for (int round = 0; status.ok(); ++round) {
        if (index == 0 && round == 3) busy.Notify();
        status = AllReduce(*communicator, size, absl::Milliseconds(1000));
      }
      EXPECT_TRUE(Tells(status, absl::StatusCode::kDeadlineExceeded,
                        {"all-reduce of gradients", VictimWords(ranks),
                         "did not come", "waited "}));
    });
    Reap(child);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, KilledProcessTest, testing::Values(2, 3, 4, 5));

}  // namespace
}  // namespace troupe
