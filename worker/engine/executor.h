// Runs programs: one actor for each lane, each instruction as soon as
// ReadyQueue says that it may start. All overlap of compute, communication and
// I/O comes from here; what an instruction does is the runner's affair.
//
//   Executor executor(clock, plan.lanes());
//   RankTimeline timeline;
//   absl::Status status = executor.Run(program, {
//       .run = [&](int i) { return handlers.Run(program.instructions(i)); },
//       .on_failure = [&](const absl::Status&) { AbortCommunicators(); }},
//       &timeline);
//
// A run may be started while the one before it is still with the device:
//
//   executor.Start(train, of_step_7);
//   executor.Follow();               // step 7 is issued, not done
//   executor.Start(train, of_step_8);
//   executor.Await();                // step 7 is done
//
// On the device everything of the second is behind everything of the first, by
// fences; the host's lanes begin with the second when the first is done. So a
// device need not idle while the host reads what a step has left, and finds out
// what comes next. Where lanes are done when the runner returns, Follow waits
// for the end.
//
// A lane takes its next instruction itself where that is ready; it tells other
// lanes through their mailboxes (lane_threads.h).
//
// On an asynchronous device an instruction of a device lane (lanes.h) is issued
// when the runner returns: other device lanes go on, their queues waiting for
// this one's by a fence. When it is done, the host's lanes go on. Where several
// queues have work, the device takes up that of the lane with the higher
// priority first.
//
// This file is the sequence of runs; program_run.h is one of them.
#ifndef TROUPE_WORKER_ENGINE_EXECUTOR_H_
#define TROUPE_WORKER_ENGINE_EXECUTOR_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "ops/device.h"
#include "proto/base/clock.h"
#include "proto/plan/lanes.h"
#include "proto/program.pb.h"
#include "proto/timeline.pb.h"
#include "proto/worker.pb.h"
#include "worker/engine/lane_threads.h"
#include "worker/engine/program_run.h"

namespace troupe {

class Executor {
 public:
  // Of programs of a plan with these lanes. Borrows the clock and the device
  // that instructions work on; null: none that is asynchronous. A lane's thread
  // is made when a program first uses it and stays until EndLanes or
  // destruction.
  Executor(const Clock& clock, Lanes lanes, Device* device = nullptr);
  // Waits for no run: REQUIRES that none is in progress.
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Makes the lanes of these programs, and lets each take what it needs of the
  // device (Device::PrepareQueue), those of the host and the caller's thread,
  // too; and the device this much scratch memory for kernels (Device::
  // PrepareScratch). For the time before ranks wait for one another. The
  // device's error.
  absl::Status Prepare(const std::vector<const Program*>& programs,
                       int64_t scratch_bytes);

  // Start and Await: runs the program to its end. REQUIRES that no run is in
  // progress.
  absl::Status Run(const Program& program, const ProgramRunner& runner,
                   RankTimeline* timeline);

  // Begins a run. Fills `timeline` (may be null) with a span for each
  // instruction that finishes, in the order in which they do; a span on an
  // asynchronous device is the time in which the device worked, and a run with
  // a timeline begins when the device has done all before it. What the caller
  // has enqueued on the device runs before. Program and timeline are borrowed
  // until the run's end. REQUIRES that at most one is in progress, that Follow
  // has succeeded since that began, and that the program's lanes are there then
  // (Prepare). The error of an Abort, or the device's: then no run has begun.
  absl::Status Start(const Program& program, ProgramRunner runner,
                     RankTimeline* timeline);

  // Waits until all of the newest run is issued; what the caller's thread
  // enqueues from then on is behind it. Cancelled where the run has failed:
  // Await says why. REQUIRES that one is in progress.
  absl::Status Follow();

  // Waits for the end of the oldest run in progress, or for its first error:
  // then nothing more starts, of later runs neither, and it returns when all
  // that had started is done, and no run is in progress any more. The error
  // says which instruction failed. Else gives when it ended, by the clock.
  // REQUIRES that one is in progress.
  absl::StatusOr<int64_t> Await();

  // Runs that were started, and whose end was not awaited.
  int in_progress() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Joins the lanes' threads; the next run starts others. REQUIRES that none is
  // in progress.
  void EndLanes();

  // Ends the runs in progress, and every later one, with `why`, which is an
  // error. From any thread, at any time; only the first call counts.
  void Abort(const absl::Status& why);

  // Where the rank is, but for its `ref`: what each lane does of the oldest run
  // that has not ended, or when the last one has. From any thread.
  RankProgress Progress() const;

 private:
  void AddLanes(const Program& program) ABSL_LOCKS_EXCLUDED(mutex_);
  // Runs an instruction and then what its lane may run next, on its thread.
  void RunLane(const LaneWork& work);
  // Each records what became of an instruction, and returns the lane's own next
  // one or -1. Issue runs it, too.
  int Issue(ProgramRun& run, int instruction) ABSL_LOCKS_EXCLUDED(mutex_);
  int Finish(ProgramRun& run, int instruction, const absl::Status& status)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // One instruction of the run that was handed out is done, or given up. Gives
  // what the next run has held back until the end of this one.
  std::vector<LaneWork> EndOne(ProgramRun& run)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FailIn(ProgramRun& run, int instruction, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Tells that the oldest run which has not ended well has failed. Empty where
  // it has not, or that was told.
  std::function<void()> ToTell() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The oldest run that has not ended; null: there is none.
  const ProgramRun* Current() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  const Lanes table_;     // of the plan
  Device* const device_;  // null: instructions are done when the runner returns
  mutable absl::Mutex mutex_;
  // In progress, the oldest first.
  std::deque<std::unique_ptr<ProgramRun>> runs_ ABSL_GUARDED_BY(mutex_);
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);
  int64_t step_ ABSL_GUARDED_BY(mutex_) = 0;  // of the last run that ended
  // When that was, or the executor was made.
  int64_t ended_ns_ ABSL_GUARDED_BY(mutex_);
  LaneThreads threads_;  // last: they use all of the above
};

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_EXECUTOR_H_
