#include "worker/engine/program_runs.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "proto/plan/find_program.h"
#include "tests/equivalence/small_job.h"
#include "tests/ops/split_memory_device.h"
#include "tests/worker/rank/small_rank.h"

namespace troupe {
namespace {

constexpr int kSteps = 5;

// Nothing in its steps needs a number on the host: gradients are not clipped.
JobSpec Job() {
  JobSpec job = SmallJob();
  job.mutable_training()->set_micro_batch_size(4);
  job.mutable_training()->set_gradient_clipping(0);
  return job;
}

StepContext ContextOf(int64_t step) {
  return {.step = step,
          .samples_before = (step - 1) * Job().training().global_batch_size(),
          .learning_rate = 0.01};
}

// A rank, and what runs its programs.
struct Running {
  explicit Running(SmallRankOptions options)
      : rank(Job(), options),
        executor(clock, rank.state().plan->lanes(), &rank.state().device),
        runs(ProgramRuns::Create(executor, rank.state(), nullptr).value()) {}

  const RealClock clock{};
  SmallRank rank;
  Executor executor;
  std::unique_ptr<ProgramRuns> runs;
};

std::vector<Scalars> OneAfterTheOther() {
  Running cpu({});
  std::vector<Scalars> scalars;
  for (int step = 1; step <= kSteps; ++step) {
    scalars.push_back(
        cpu.runs->Run(cpu.rank.program(), ContextOf(step), nullptr).value());
  }
  return scalars;
}

SmallRankOptions OnSplitMemory() {
  return {.new_device = [] {
    return std::make_unique<SplitMemoryDevice>(CpuDeviceOptions{.threads = 1});
  }};
}

// Not one kernel of the first step has run when all of the second is with the
// device, its samples read. What each leaves is its own.
TEST(ProgramRuns, TheNextStepIsIssuedBeforeTheLastHasBegun) {
  const std::vector<Scalars> want = OneAfterTheOther();
  Running split(OnSplitMemory());
  auto& device = static_cast<SplitMemoryDevice&>(split.rank.state().device);
  absl::Notification begin;
  // Runs are behind what their caller has enqueued.
  device.Enqueue([&] { begin.WaitForNotification(); });
  const Program& train = split.rank.program();
  ASSERT_TRUE(split.runs->Start(train, ContextOf(1), nullptr).ok());
  ASSERT_TRUE(split.runs->Start(train, ContextOf(2), nullptr).ok());
  ASSERT_TRUE(split.executor.Follow().ok());  // it is issued
  EXPECT_EQ(split.runs->under_way(), 2);
  EXPECT_EQ(split.executor.Progress().step(), 1);
  begin.Notify();
  for (int step = 1; step <= 2; ++step) {
    const auto ended = split.runs->Await();
    ASSERT_TRUE(ended.ok()) << ended.status();
    EXPECT_EQ(ended->scalars, want[step - 1]) << step;
  }
}

TEST(ProgramRuns, StepsThatFollowEachOtherLeaveWhatTheyDoAlone) {
  const std::vector<Scalars> want = OneAfterTheOther();
  for (const bool on_host : {false, true}) {
    Running run(on_host ? SmallRankOptions{} : OnSplitMemory());
    std::vector<Scalars> got;
    for (int step = 1; step <= kSteps; ++step) {
      ASSERT_TRUE(
          run.runs->Start(run.rank.program(), ContextOf(step), nullptr).ok());
      if (step > 1) got.push_back(run.runs->Await().value().scalars);
    }
    got.push_back(run.runs->Await().value().scalars);
    EXPECT_EQ(got, want) << on_host;
  }
}

// The device fails between two steps, when the next one is with it.
TEST(ProgramRuns, NothingIsUnderWayOnceScalarsCannotBeRead) {
  Running split(OnSplitMemory());
  auto& device = static_cast<SplitMemoryDevice&>(split.rank.state().device);
  const Program& train = split.rank.program();
  ASSERT_TRUE(split.runs->Start(train, ContextOf(1), nullptr).ok());
  while (split.executor.Progress().program() == Program::TRAIN) {
    std::this_thread::yield();
  }
  absl::Notification begin;
  device.Enqueue([&] { begin.WaitForNotification(); });
  ASSERT_TRUE(split.runs->Start(train, ContextOf(2), nullptr).ok());
  const absl::Status broken = absl::InternalError("an illegal address");
  device.Fail(broken);
  begin.Notify();
  EXPECT_EQ(split.runs->Await().status(), broken);
  EXPECT_EQ(split.runs->under_way(), 0);
  EXPECT_EQ(split.executor.in_progress(), 0);
}

// As after an error elsewhere.
TEST(ProgramRuns, WhatWasStartedEndsWithThem) {
  Running split(OnSplitMemory());
  const Program& train = split.rank.program();
  ASSERT_TRUE(split.runs->Start(train, ContextOf(1), nullptr).ok());
  ASSERT_TRUE(split.runs->Start(train, ContextOf(2), nullptr).ok());
  split.runs.reset();
  EXPECT_EQ(split.executor.in_progress(), 0);
}

}  // namespace
}  // namespace troupe
