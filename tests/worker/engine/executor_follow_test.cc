// Runs that begin while the one before is still with the device.
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "proto/plan/program_text.h"
#include "tests/ops/split_memory_device.h"
#include "tests/scheduler/planned_lanes.h"
#include "worker/engine/executor.h"

namespace troupe {
namespace {

// The lanes COMPUTE, DATA and COLLECTIVE of the device, and IO of the host.
constexpr char kStep[] =
    "L m0\n"
    "F u0 m0 ^0\n"
    "R u0 g0 ^1\n"
    "O u0 ^2\n";
constexpr char kStepAndCopy[] =
    "K u0\n"
    "F u0 m0\n"
    "O u0\n";

class ExecutorFollow : public testing::Test {
 protected:
  // What the device did, in that order: 100 of a run, and the instruction.
  ProgramRunner RunnerOf(int run) {
    return {.run =
                [this, run](int index) {
                  if (fails_at_ == 100 * run + index) {
                    return absl::UnavailableError("broken");
                  }
                  if (holds_at_ == 100 * run + index) {
                    device_.Enqueue([this] { go_on_.WaitForNotification(); });
                  }
                  device_.Enqueue([this, run, index] {
                    absl::MutexLock lock(&mutex_);
                    done_.push_back(100 * run + index);
                  });
                  ++issued_;
                  return absl::OkStatus();
                },
            .on_failure = [this](const absl::Status&) { ++told_; },
            .step = run};
  }
  std::vector<int> done() {
    absl::MutexLock lock(&mutex_);
    return done_;
  }

  const RealClock clock_{};
  SplitMemoryDevice device_{{.threads = 1}};
  absl::Notification go_on_;
  int holds_at_ = -1;  // the device, until it is to go on
  int fails_at_ = -1;
  std::atomic<int> issued_{0};
  std::atomic<int> told_{0};
  absl::Mutex mutex_;
  std::vector<int> done_;
  Executor executor_{clock_, AllLanes(), &device_};
  const Program step_ = ParseProgram(kStep).value();
  const Program copied_ = ParseProgram(kStepAndCopy).value();
};

// All of the second run is with the device before it has done anything of the
// first one's last instruction.
TEST_F(ExecutorFollow, TheNextRunIsIssuedWhileTheDeviceHasTheLast) {
  holds_at_ = 103;
  ASSERT_TRUE(executor_.Start(step_, RunnerOf(1), nullptr).ok());
  ASSERT_TRUE(executor_.Follow().ok());
  device_.Enqueue([this] {
    absl::MutexLock lock(&mutex_);
    done_.push_back(-1);  // between the two
  });
  ASSERT_TRUE(executor_.Start(step_, RunnerOf(2), nullptr).ok());
  ASSERT_TRUE(executor_.Follow().ok());
  EXPECT_EQ(executor_.in_progress(), 2);
  EXPECT_EQ(issued_, 8);
  for (const int done : done()) EXPECT_LT(done, 103);
  EXPECT_EQ(executor_.Progress().step(), 1);
  go_on_.Notify();
  const auto first = executor_.Await();
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = executor_.Await();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_LE(*first, *second);
  EXPECT_EQ(done(),
            (std::vector<int>{100, 101, 102, 103, -1, 200, 201, 202, 203}));
  EXPECT_EQ(executor_.Progress().step(), 2);
  EXPECT_EQ(executor_.in_progress(), 0);
}

// It may write host memory that the device still copies from.
TEST_F(ExecutorFollow, TheHostsLanesBeginWhenTheLastRunIsDone) {
  holds_at_ = 102;
  ASSERT_TRUE(executor_.Start(copied_, RunnerOf(1), nullptr).ok());
  ASSERT_TRUE(executor_.Follow().ok());
  std::atomic<bool> let_go{false};
  std::atomic<int> copied_after{0};
  ProgramRunner second = RunnerOf(2);
  second.run = [&, run = second.run](int index) {
    if (index == 0) copied_after = let_go ? 1 : -1;
    return run(index);
  };
  ASSERT_TRUE(executor_.Start(copied_, second, nullptr).ok());
  while (issued_ < 5) std::this_thread::yield();  // all but the second's copy
  for (int i = 0; i < 20000 && copied_after == 0; ++i) {
    std::this_thread::yield();
  }
  EXPECT_EQ(copied_after, 0);
  let_go = true;
  go_on_.Notify();
  EXPECT_TRUE(executor_.Await().ok());
  EXPECT_TRUE(executor_.Await().ok());
  EXPECT_EQ(copied_after, 1);
}

TEST_F(ExecutorFollow, ARunWithATimelineBeginsWhenTheLastIsDone) {
  ASSERT_TRUE(executor_.Start(step_, RunnerOf(1), nullptr).ok());
  ASSERT_TRUE(executor_.Follow().ok());
  RankTimeline timeline;
  ASSERT_TRUE(executor_.Start(step_, RunnerOf(2), &timeline).ok());
  EXPECT_GE(done().size(), 4u);
  ASSERT_TRUE(executor_.Await().ok());
  ASSERT_TRUE(executor_.Await().ok());
  ASSERT_EQ(timeline.spans_size(), 4);
  for (const Span& span : timeline.spans()) EXPECT_GE(span.start_ns(), 0);
}

TEST_F(ExecutorFollow, AFailureTakesTheNextRunAlong) {
  ProgramRunner first = RunnerOf(1);
  first.outcome = [](int index, const absl::Status& queue) {
    return index == 3 ? absl::UnavailableError("a peer died") : queue;
  };
  holds_at_ = 103;
  ASSERT_TRUE(executor_.Start(step_, first, nullptr).ok());
  ASSERT_TRUE(executor_.Follow().ok());
  ASSERT_TRUE(executor_.Start(step_, RunnerOf(2), nullptr).ok());
  go_on_.Notify();
  EXPECT_EQ(executor_.Await().status(),
            absl::UnavailableError("STEP unit 0: a peer died"));
  EXPECT_EQ(executor_.in_progress(), 0);
  EXPECT_EQ(told_, 1);
}

// What was issued of the first run ends as it would have: its peers are not
// sent away before.
TEST_F(ExecutorFollow, AFailureLetsTheRunBeforeEnd) {
  holds_at_ = 103;
  fails_at_ = 200;
  ASSERT_TRUE(executor_.Start(step_, RunnerOf(1), nullptr).ok());
  ASSERT_TRUE(executor_.Follow().ok());
  ASSERT_TRUE(executor_.Start(step_, RunnerOf(2), nullptr).ok());
  EXPECT_TRUE(absl::IsCancelled(executor_.Follow()));
  // A thread that would tell too early has the time to.
  for (int i = 0; i < 20000 && told_ == 0; ++i) std::this_thread::yield();
  EXPECT_EQ(told_, 0);
  go_on_.Notify();
  EXPECT_TRUE(executor_.Await().ok());
  EXPECT_EQ(told_, 1);
  EXPECT_EQ(done(), (std::vector<int>{100, 101, 102, 103}));
  EXPECT_EQ(executor_.Await().status(),
            absl::UnavailableError("LOAD_BATCH, micro-batch 0: broken"));
  EXPECT_EQ(told_, 1);
}

TEST_F(ExecutorFollow, AnAbortEndsBoth) {
  holds_at_ = 103;
  ASSERT_TRUE(executor_.Start(step_, RunnerOf(1), nullptr).ok());
  ASSERT_TRUE(executor_.Follow().ok());
  ASSERT_TRUE(executor_.Start(step_, RunnerOf(2), nullptr).ok());
  executor_.Abort(absl::CancelledError("enough"));
  EXPECT_EQ(told_, 1);
  go_on_.Notify();
  EXPECT_EQ(executor_.Await().status(), absl::CancelledError("enough"));
  EXPECT_EQ(executor_.in_progress(), 0);
}

TEST(ExecutorFollowOnTheHost, WaitsForTheEnd) {
  const RealClock clock;
  Executor executor(clock, AllLanes());
  const Program program = ParseProgram(kStep).value();
  std::atomic<int> done{0};
  const ProgramRunner runner = {.run = [&](int) {
    ++done;
    return absl::OkStatus();
  }};
  for (int run = 1; run <= 100; ++run) {
    ASSERT_TRUE(executor.Start(program, runner, nullptr).ok());
    ASSERT_TRUE(executor.Follow().ok());
    EXPECT_EQ(done, 4 * run);
    if (run > 1) {
      ASSERT_TRUE(executor.Await().ok());
    }
  }
  ASSERT_TRUE(executor.Await().ok());
}

// Many runs, two at a time; the device sees them as one after the other.
TEST_F(ExecutorFollow, ManyRunsKeepTheirOrder) {
  ASSERT_TRUE(executor_.Start(step_, RunnerOf(0), nullptr).ok());
  for (int run = 1; run < 50; ++run) {
    ASSERT_TRUE(executor_.Follow().ok());
    ASSERT_TRUE(executor_.Start(step_, RunnerOf(run), nullptr).ok());
    ASSERT_TRUE(executor_.Await().ok());
  }
  ASSERT_TRUE(executor_.Await().ok());
  std::vector<int> want;
  for (int run = 0; run < 50; ++run) {
    for (int index = 0; index < 4; ++index) want.push_back(100 * run + index);
  }
  EXPECT_EQ(done(), want);
}

// To follow a run, fences are given to a driver, which may take its time: here
// its queue is full.
TEST_F(ExecutorFollow, AnAbortDoesNotWaitForTheDriver) {
  ASSERT_TRUE(executor_.Start(step_, RunnerOf(1), nullptr).ok());
  absl::Notification full;
  device_.Enqueue([&] {
    full.Notify();
    go_on_.WaitForNotification();
  });
  full.WaitForNotification();
  for (int i = 0; i < SplitMemoryDevice::kQueuedMax; ++i) {
    device_.Enqueue([] {});
  }
  std::thread other([this] {
    for (int i = 0; i < 20000; ++i) std::this_thread::yield();
    executor_.Abort(absl::CancelledError("enough"));
    go_on_.Notify();
  });
  executor_.Follow().IgnoreError();
  other.join();
  executor_.Await().status().IgnoreError();
}

}  // namespace
}  // namespace troupe
