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
// lanes through their mailboxes. A lane has at most one instruction that is
// ready, so a mailbox of one never overflows.
//
// On an asynchronous device the thread of a device lane (lanes.h) is the
// device's queue. When the runner returns, the instruction is issued: other
// device lanes go on, their queues waiting for this one's by a fence. A second
// thread of the lane sleeps until it is done, and lets the host's lanes go on.
// Where several queues have work, the device takes up that of the lane with
// the higher priority first.
#ifndef TROUPE_WORKER_ENGINE_EXECUTOR_H_
#define TROUPE_WORKER_ENGINE_EXECUTOR_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "ops/device.h"
#include "proto/base/clock.h"
#include "proto/plan/lanes.h"
#include "proto/plan/ready_queue.h"
#include "proto/program.pb.h"
#include "proto/timeline.pb.h"
#include "proto/worker.pb.h"
#include "worker/actor/actor.h"

namespace troupe {

// What a run calls.
struct ProgramRunner {
  // Carries out instruction `index` of the program, on the lane's thread, or
  // enqueues it on the device.
  std::function<absl::Status(int index)> run;
  // Called with what waiting for the end of instruction `index` on an
  // asynchronous device has returned, on another thread than the lane's: what
  // became of it. May be empty.
  std::function<absl::Status(int index, const absl::Status& queue)> outcome;
  // Called once, at the first failure or abort of a run, on any thread: makes
  // instructions that wait for a peer return. Where the run before is not done,
  // that ends first, as it can: all of it is issued. May be empty.
  std::function<void(const absl::Status& why)> on_failure;
  int64_t step = 0;  // that the program runs for: Progress says it
};

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
  struct RunState;
  struct LaneWork {
    RunState* run = nullptr;
    int instruction = -1;
  };
  using LaneActor = Actor<LaneWork>;

  void StartLanes(const Program& program) ABSL_LOCKS_EXCLUDED(mutex_);
  // First, on the lane's thread.
  void PrepareLane(int lane) ABSL_LOCKS_EXCLUDED(mutex_);
  bool OnDevice(int lane) const;
  // Runs an instruction and then what its lane may run next, on its thread.
  void RunLane(int lane, LaneWork work);
  absl::Status OutcomeOf(const RunState& run, int instruction,
                         const absl::Status& queue);
  // Each records what became of an instruction, and returns the lane's own next
  // one or -1. Issue runs it, too.
  int Issue(RunState& run, int lane, int instruction)
      ABSL_LOCKS_EXCLUDED(mutex_);
  int Finish(RunState& run, int lane, int instruction,
             const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for the end of an issued instruction.
  void AwaitEnd(int lane, LaneWork work);
  // One instruction of the run that was handed out is done, or given up. Gives
  // what the next run has held back until the end of this one.
  std::vector<LaneWork> EndOne(RunState& run)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Send(const std::vector<LaneWork>& work);
  void Fail(RunState& run, const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  void FailIn(RunState& run, int instruction, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Tells that the oldest run which has not ended well has failed. Empty where
  // it has not, or that was told.
  std::function<void()> ToTell() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The oldest run that has not ended; null: there is none.
  const RunState* Current() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  const Lanes table_;     // of the plan
  Device* const device_;  // null: instructions are done when the runner returns
  // By lane. Those who wait for the ends of a device lane's instructions
  // outlive the lanes, which send them those.
  std::map<int, std::unique_ptr<LaneActor>> waiters_;
  std::map<int, std::unique_ptr<LaneActor>> lanes_;
  mutable absl::Mutex mutex_;
  int starting_ ABSL_GUARDED_BY(mutex_) = 0;  // lanes that are not prepared
  // In progress, the oldest first.
  std::deque<std::unique_ptr<RunState>> runs_ ABSL_GUARDED_BY(mutex_);
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);
  int64_t step_ ABSL_GUARDED_BY(mutex_) = 0;  // of the last run that ended
  // When that was, or the executor was made.
  int64_t ended_ns_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_EXECUTOR_H_
