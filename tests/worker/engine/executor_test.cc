#include "worker/engine/executor.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "proto/plan/program_text.h"
#include "proto/plan/span.h"
#include "tests/ops/split_memory_device.h"
#include "tests/scheduler/planned_lanes.h"

namespace troupe {
namespace {

Program Parse(const std::string& text) {
  absl::StatusOr<Program> program = ParseProgram(text);
  EXPECT_TRUE(program.ok()) << program.status();
  return *program;
}

// Compute on one lane, reductions on another, each after its backward.
Program TwoLanes() {
  return Parse(
      "F u0 m0\n"
      "F u1 m0 ^0\n"
      "W u1 m0 ^1\n"
      "R u1 g0 ^2\n"
      "W u0 m0 ^2\n"
      "R u0 g0 ^4\n"
      "O u0 ^5\n"
      "O u1 ^3\n");
}

// What the lane runs now; empty: nothing.
std::string Doing(const Executor& executor, int lane) {
  const RankProgress now = executor.Progress();
  for (const LaneProgress& progress : now.lanes()) {
    if (progress.lane() != lane || !progress.running()) continue;
    return InstructionText(progress.current());
  }
  return "";
}

TEST(Executor, RunsEveryInstructionOnceAndInOrder) {
  const RealClock clock;
  Executor executor(clock, AllLanes());
  const Program program = TwoLanes();
  // Again and again on the same lanes, and now and then on others.
  for (int round = 0; round < 200; ++round) {
    if (round % 50 == 0) executor.EndLanes();
    std::vector<std::atomic<bool>> done(program.instructions_size());
    std::atomic<int> count{0};
    const ProgramRunner runner = {.run = [&](int index) {
      for (const int earlier : program.instructions(index).after()) {
        EXPECT_TRUE(done[earlier]) << index << " before " << earlier;
      }
      EXPECT_FALSE(done[index].exchange(true));
      ++count;
      return absl::OkStatus();
    }};
    RankTimeline timeline;
    ASSERT_TRUE(executor.Run(program, runner, &timeline).ok());
    EXPECT_EQ(count, program.instructions_size());
    ASSERT_EQ(timeline.spans_size(), program.instructions_size());
    for (const Span& span : timeline.spans()) {
      EXPECT_GE(span.start_ns(), 0);
      EXPECT_LE(span.start_ns(), span.end_ns());
      const Instruction& its = program.instructions(span.instruction());
      EXPECT_EQ(span.lane(), its.lane());
      Span timeless = span;
      timeless.clear_start_ns();
      timeless.clear_end_ns();
      EXPECT_EQ(timeless.SerializeAsString(),
                SpanOf(its, span.instruction()).SerializeAsString());
    }
  }
}

TEST(Executor, LanesRunAtTheSameTime) {
  const RealClock clock;
  Executor executor(clock, AllLanes());
  const Program program = Parse("F u0 m0\nR u1 g0\n");
  absl::Notification compute;
  absl::Notification collective;
  // Each waits for the other to have begun.
  const ProgramRunner runner = {.run = [&](int index) {
    (index == 0 ? compute : collective).Notify();
    (index == 0 ? collective : compute).WaitForNotification();
    return absl::OkStatus();
  }};
  EXPECT_TRUE(executor.Run(program, runner, nullptr).ok());
}

TEST(Executor, AnEmptyProgramIsDoneAtOnce) {
  const RealClock clock;
  Executor executor(clock, AllLanes());
  const Program program;
  EXPECT_TRUE(executor.Run(program, {.run = nullptr}, nullptr).ok());
  EXPECT_EQ(executor.Progress().program(), Program::KIND_UNSPECIFIED);
  EXPECT_EQ(executor.Progress().lanes_size(), 0);
}

TEST(Executor, TheFirstErrorStopsTheRun) {
  const RealClock clock;
  Executor executor(clock, AllLanes());
  const Program program = TwoLanes();
  std::atomic<int> started{0};
  std::atomic<int> failures{0};
  const ProgramRunner runner = {
      .run =
          [&](int index) {
            ++started;
            return index == 2 ? absl::UnavailableError("the disk is on fire")
                              : absl::OkStatus();
          },
      .on_failure = [&](const absl::Status& why) { ++failures; }};
  const absl::Status status = executor.Run(program, runner, nullptr);
  EXPECT_EQ(status, absl::UnavailableError(
                        "BACKWARD_WEIGHT unit 1, micro-batch 0: the disk is "
                        "on fire"));
  EXPECT_EQ(started, 3);
  EXPECT_EQ(failures, 1);
  // And the executor is fit for another run.
  EXPECT_TRUE(
      executor
          .Run(program, {.run = [](int) { return absl::OkStatus(); }}, nullptr)
          .ok());
}

TEST(Executor, AFailureWakesALaneThatWaitsForAPeer) {
  const RealClock clock;
  Executor executor(clock, AllLanes());
  const Program program = Parse("R u0 g0\nF u0 m0\nF u1 m0\n");
  absl::Notification waiting;
  absl::Notification aborted;
  const ProgramRunner runner = {
      .run =
          [&](int index) {
            if (index == 0) {
              waiting.Notify();
              aborted.WaitForNotification();
              return absl::CancelledError("aborted");
            }
            waiting.WaitForNotification();
            return absl::InternalError("broken");
          },
      .on_failure = [&](const absl::Status& why) { aborted.Notify(); }};
  const absl::Status status = executor.Run(program, runner, nullptr);
  EXPECT_TRUE(absl::IsInternal(status)) << status;
}

TEST(Executor, AbortEndsTheRunAndEveryLaterOne) {
  const RealClock clock;
  Executor executor(clock, AllLanes());
  const Program program = TwoLanes();
  absl::Notification running;
  absl::Notification aborted;
  const ProgramRunner runner = {
      .run =
          [&](int index) {
            if (index == 1) {
              running.Notify();
              aborted.WaitForNotification();
            }
            EXPECT_LE(index, 1);
            return absl::OkStatus();
          },
      .on_failure = [&](const absl::Status& why) { aborted.Notify(); }};
  std::thread aborter([&] {
    running.WaitForNotification();
    EXPECT_EQ(Doing(executor, LaneNamed("COMPUTE")), "F u1 m0");
    executor.Abort(absl::CancelledError("enough"));
  });
  EXPECT_EQ(executor.Run(program, runner, nullptr),
            absl::CancelledError("enough"));
  aborter.join();
  EXPECT_EQ(executor.Run(program, runner, nullptr),
            absl::CancelledError("enough"));
}

// The forward is issued, and so is all that is behind it on lanes of the
// device, while the device has not begun; a lane of the host waits until it has
// ended.
TEST(Executor, ADevicesLanesRunAheadOfIt) {
  const RealClock clock;
  SplitMemoryDevice device({.threads = 1});
  Executor executor(clock, AllLanes(), &device);
  const Program program = Parse(
      "K u0\n"
      "F u0 m0 ^0\n"
      "F u1 m0 ^1\n"
      "R u1 g0 ^2\n"
      "O u1 ^3\n"
      "K u1 ^1\n");
  absl::Notification reduction_issued;
  std::atomic<bool> forward_done{false};
  std::vector<int> order;  // of the device's work; its fences keep it apart
  const ProgramRunner runner = {.run = [&](int index) {
    if (program.instructions(index).lane() == LaneNamed("IO")) {
      EXPECT_EQ(forward_done, index == 5);
      return absl::OkStatus();
    }
    device.Enqueue([&, index] {
      if (index == 1) {
        reduction_issued.WaitForNotification();
        forward_done = true;
      }
      order.push_back(index);
    });
    if (index == 3) {
      EXPECT_EQ(Doing(executor, LaneNamed("COMPUTE")), "F u0 m0");
      reduction_issued.Notify();
    }
    return absl::OkStatus();
  }};
  RankTimeline timeline;
  ASSERT_TRUE(executor.Run(program, runner, &timeline).ok());
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(timeline.spans_size(), program.instructions_size());
}

TEST(Executor, ADevicesQueuesHaveThePrioritiesOfTheirLanes) {
  const RealClock clock;
  SplitMemoryDevice device({.threads = 1});
  Lanes lanes = AllLanes();
  lanes[LaneFor(Instruction::FORWARD)].set_priority(3);
  lanes[LaneFor(Instruction::REDUCE_GRADS)].set_priority(-1);
  lanes[LaneFor(Instruction::SNAPSHOT)].set_priority(7);  // no queue of it
  Executor executor(clock, lanes, &device);
  const ProgramRunner runner = {.run = [](int) { return absl::OkStatus(); }};
  ASSERT_TRUE(
      executor.Run(Parse("K u0\nF u0 m0 ^0\nR u0 g0 ^1\n"), runner, nullptr)
          .ok());
  EXPECT_EQ(device.priorities(), (std::multiset<int>{-1, 3}));
}

TEST(Executor, LanesAreThereBeforeTheFirstRun) {
  const RealClock clock;
  SplitMemoryDevice device({.threads = 1});
  Executor executor(clock, AllLanes(), &device);
  Program train = Parse("K u0\nF u0 m0 ^0\nR u0 g0 ^1\nO u0 ^2\n");
  train.mutable_instructions(3)->set_lane(LaneNamed("OPTIMIZER"));
  ASSERT_TRUE(executor.Prepare({&train, nullptr, &train}, 1000).ok());
  // IO, COMPUTE, COLLECTIVE and the host's OPTIMIZER; and the caller.
  const std::multiset<QueueWork> want = {
      QueueWork::kCopies, QueueWork::kProducts, QueueWork::kCopies,
      QueueWork::kFences, QueueWork::kCopies};
  EXPECT_EQ(device.prepared(), want);
  EXPECT_EQ(device.queues(), 5);
  EXPECT_EQ(device.scratch_bytes(), 1000u);
  const ProgramRunner runner = {.run = [](int) { return absl::OkStatus(); }};
  ASSERT_TRUE(executor.Run(train, runner, nullptr).ok());
  EXPECT_EQ(device.prepared(), want);
  EXPECT_EQ(device.queues(), 5);
}

// On a machine that is busy elsewhere while a run begins, but not in it.
class ClockOfABusyMachine final : public Clock {
 public:
  absl::Time Now() const override { return real_.Now(); }
  int64_t MonotonicNanos() const override {
    const absl::Duration away = absl::Milliseconds(reads_++ < 3 ? 5 : 0);
    absl::SleepFor(away);
    const int64_t now = real_.MonotonicNanos();
    absl::SleepFor(away);
    return now;
  }

 private:
  const RealClock real_{};
  mutable std::atomic<int> reads_{0};
};

TEST(Executor, SpansOfHostAndDeviceAreInTheOrderOfTheWaits) {
  const ClockOfABusyMachine clock;
  SplitMemoryDevice device({.threads = 1});
  Executor executor(clock, AllLanes(), &device);
  const Program program = Parse(
      "K u0\nF u0 m0 ^0\nR u0 g0 ^1\n"
      "K u1 ^2\nF u0 m1 ^3\n");
  const ProgramRunner runner = {.run = [&](int) { return absl::OkStatus(); }};
  RankTimeline timeline;
  ASSERT_TRUE(executor.Run(program, runner, &timeline).ok());
  ASSERT_EQ(timeline.spans_size(), 5);
  std::vector<Span> spans(5);
  for (const Span& span : timeline.spans()) spans[span.instruction()] = span;
  for (int i = 0; i < 5; ++i) {
    EXPECT_LE(spans[i].start_ns(), spans[i].end_ns());
    EXPECT_LE(spans[std::max(i - 1, 0)].end_ns(), spans[i].end_ns()) << i;
  }
}

TEST(Executor, SaysWhichStepItIsIn) {
  const RealClock clock;
  Executor executor(clock, AllLanes());
  Program program = Parse("F u0 m0\n");
  program.set_kind(Program::TRAIN);
  const ProgramRunner runner = {
      .run =
          [&](int) {
            const RankProgress now = executor.Progress();
            EXPECT_EQ(now.program(), Program::TRAIN);
            EXPECT_EQ(now.step(), 12);
            EXPECT_EQ(Doing(executor, LaneNamed("COMPUTE")), "F u0 m0");
            return absl::OkStatus();
          },
      .step = 12};
  EXPECT_EQ(executor.Progress().step(), 0);
  ASSERT_TRUE(executor.Run(program, runner, nullptr).ok());
  EXPECT_EQ(executor.Progress().step(), 12);
  EXPECT_EQ(executor.Progress().program(), Program::KIND_UNSPECIFIED);
}

// An instruction that ran on the device and came to nothing there.
TEST(Executor, WhatBecameOfAnInstructionIsAskedAtItsEnd) {
  const RealClock clock;
  SplitMemoryDevice device({.threads = 1});
  Executor executor(clock, AllLanes(), &device);
  const Program program = Parse("L m0\nF u0 m0 ^0\nR u0 g0 ^1\n");
  std::atomic<int> run{0}, asked{0};
  const ProgramRunner runner = {
      .run =
          [&](int index) {
            device.Enqueue([&] { ++run; });
            return absl::OkStatus();
          },
      .outcome =
          [&](int index, const absl::Status& queue) {
            EXPECT_TRUE(queue.ok());
            EXPECT_GT(run, index);
            ++asked;
            return index == 2 ? absl::UnavailableError("a peer died") : queue;
          }};
  EXPECT_EQ(executor.Run(program, runner, nullptr),
            absl::UnavailableError("REDUCE_GRADS unit 0: a peer died"));
  EXPECT_EQ(asked, 3);
}

// What a lane has enqueued may wait for a peer until the run's failure ends it;
// so that is told before anybody waits.
TEST(Executor, AFailureIsToldBeforeTheQueueIsAwaited) {
  const RealClock clock;
  SplitMemoryDevice device({.threads = 1});
  Executor executor(clock, AllLanes(), &device);
  const Program program = Parse("R u0 g0\nR u1 g0\n");
  absl::Notification aborted;
  const ProgramRunner runner = {
      .run =
          [&](int index) {
            if (index == 1) return absl::InternalError("broken");
            device.Enqueue([&] { aborted.WaitForNotification(); });
            return absl::OkStatus();
          },
      .on_failure = [&](const absl::Status&) { aborted.Notify(); }};
  EXPECT_EQ(executor.Run(program, runner, nullptr),
            absl::InternalError("REDUCE_GRADS unit 1: broken"));
}

TEST(Executor, AFailureEndsWhatTheDeviceHas) {
  const RealClock clock;
  SplitMemoryDevice device({.threads = 1});
  Executor executor(clock, AllLanes(), &device);
  const Program program = Parse("F u0 m0\nF u1 m0\nF u2 m0\n");
  std::atomic<int> done{0};
  const ProgramRunner runner = {.run = [&](int index) {
    device.Enqueue([&] { ++done; });
    return index == 1 ? absl::UnavailableError("broken") : absl::OkStatus();
  }};
  EXPECT_EQ(executor.Run(program, runner, nullptr),
            absl::UnavailableError("FORWARD unit 1, micro-batch 0: broken"));
  EXPECT_EQ(done, 2);
}

}  // namespace
}  // namespace troupe
