// One run of a program: which of its instructions were handed to lanes, are
// issued to a device and are done; the spans of its timeline; its first error.
// The executor holds the runs in progress, and moves instructions between a run
// and the threads of its lanes:
//
//   ProgramRun run(program, lanes, runner, timeline);
//   RETURN_IF_ERROR(run.Begin(clock, device));
//   for (int i : run.Start(/*first=*/true)) ... to the lane of i ...
//   status = run.RunOnHost(i, device);         // on that lane's thread
//   run.Finish(i, now_ns).wake                 // may start next
//   if (run.EndOne(clock)) ... it has ended ...
//
// Thread rule: calls marked "any lane" are made for an instruction which counts
// as running, and need no lock: the run stays until none is running. All others
// need the executor's lock, but for Begin, which comes before the run is known
// to any other thread.
#ifndef TROUPE_WORKER_ENGINE_PROGRAM_RUN_H_
#define TROUPE_WORKER_ENGINE_PROGRAM_RUN_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "ops/device.h"
#include "proto/base/clock.h"
#include "proto/plan/lanes.h"
#include "proto/plan/ready_queue.h"
#include "proto/program.pb.h"
#include "proto/timeline.pb.h"
#include "proto/worker.pb.h"
#include "worker/engine/lane_log.h"
#include "worker/engine/step_fences.h"

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

class ProgramRun;

// An instruction of a run, for the thread of its lane.
struct LaneWork {
  ProgramRun* run = nullptr;
  int instruction = -1;

  int lane() const;
};

class ProgramRun {
 public:
  // Borrows program, lanes and timeline, which may be null.
  ProgramRun(const Program& program, const Lanes& lanes, ProgramRunner runner,
             RankTimeline* timeline);

  // From here on the run is behind what the caller has enqueued on the device,
  // which is asynchronous, or null. The device's error.
  absl::Status Begin(const Clock& clock, Device* device);

  const Program& program() const { return program_; }  // any lane
  int64_t step() const { return runner_.step; }
  // Whether the instruction's lane is a queue of the device. Any lane.
  bool OnDevice(int instruction) const;

  // Any lane: carries the instruction out, and waits for what it has enqueued.
  absl::Status RunOnHost(int instruction, Device* device);
  // Any lane: enqueues the instruction. Then Await, on another thread, returns
  // what became of it.
  absl::Status RunOnDevice(int instruction);
  absl::Status Await(int instruction);
  // What the caller enqueues from now on is behind the run. REQUIRES that all
  // is issued, and that the run stays.
  void Join();

  // Hands out the first instructions. `first`: the run before has ended; else
  // those of the host are held back until TakeHeld.
  std::vector<LaneWork> Start(bool first);
  std::vector<LaneWork> TakeHeld(int64_t now_ns);

  // A lane begins with an instruction that was sent to it.
  void Take(int instruction, int64_t now_ns) {
    log_.Start(instruction, now_ns);
  }
  // What may start after an instruction that is issued, or is done: the lane's
  // own next one or -1, and what to send to other lanes.
  struct HandedOut {
    int own = -1;
    std::vector<LaneWork> wake;
  };
  HandedOut Issue(int instruction, int64_t now_ns);
  HandedOut Finish(int instruction, int64_t now_ns);
  // One instruction that was handed out is done, or given up. Whether it was
  // the last one: then the run has ended.
  bool EndOne(const Clock& clock);

  bool ended() const { return running_ == 0; }
  bool done() const { return queue_.done(); }
  bool issued() const { return not_issued_ == 0; }
  int64_t ended_ns() const { return ended_ns_; }

  const absl::Status& status() const { return status_; }
  // REQUIRES that status() is OK.
  void Fail(const absl::Status& why) { status_ = why; }
  // Of the run before, which takes this one along.
  void TakeFailure(const ProgramRun& before);
  // Tells that the run has failed. Empty where it has not, that was told, or
  // nobody is to be told.
  std::function<void()> ToTell();

  // `ended_ns`: when the run before has ended.
  RankProgress Progress(int64_t now_ns, int64_t ended_ns) const;

 private:
  HandedOut HandOut(int lane, const std::vector<int>& ready, int64_t now_ns);
  void AddSpan(int instruction, int64_t now_ns);
  int LaneOf(int instruction) const {
    return program_.instructions(instruction).lane();
  }
  absl::Status OutcomeOf(int instruction, const absl::Status& queue) const;

  const Program& program_;
  const Lanes& lanes_;
  const ProgramRunner runner_;
  RankTimeline* const timeline_;
  ReadyQueue queue_;
  LaneLog log_;
  int running_ = 0;             // handed out and not finished
  int not_issued_;              // nor finished
  std::vector<LaneWork> held_;  // handed out when the run before has ended
  absl::Status status_;
  bool told_ = false;  // that it failed
  int64_t origin_ns_ = 0;
  int64_t ended_ns_ = 0;
  std::optional<StepFences> fences_;  // on an asynchronous device
};

inline int LaneWork::lane() const {
  return run->program().instructions(instruction).lane();
}

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_PROGRAM_RUN_H_
