// Real processes that are killed and stopped: the children are forked while the
// test has no threads, and run one rank each.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
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

class GlooProcessTest : public testing::TestWithParam<int> {};

TEST_P(GlooProcessTest, AKilledPeerIsNamedAtOnce) {
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

TEST_P(GlooProcessTest, APeerKilledInTheMiddleOfTransfersIsNamed) {
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

TEST_P(GlooProcessTest, AStoppedPeerIsNamedWhenTimeIsUp) {
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

INSTANTIATE_TEST_SUITE_P(Ranks, GlooProcessTest, testing::Values(2, 3, 4, 5));

}  // namespace
}  // namespace troupe
