#include "worker/engine/executor.h"

#include <utility>
#include <vector>

#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/program_text.h"

namespace troupe {

Executor::Executor(const Clock& clock, Lanes lanes, Device* device)
    : clock_(clock),
      table_(std::move(lanes)),
      device_(device != nullptr && device->asynchronous() ? device : nullptr),
      ended_ns_(clock.MonotonicNanos()),
      threads_(table_, device_,
               {.run = [this](const LaneWork& work) { RunLane(work); },
                .await =
                    [this](const LaneWork& work) {
                      Finish(*work.run, work.instruction,
                             work.run->Await(work.instruction));
                    }}) {}

Executor::~Executor() {
  absl::MutexLock lock(&mutex_);
  CHECK(runs_.empty()) << "an executor was destroyed while it runs";
}

void Executor::EndLanes() {
  {
    absl::MutexLock lock(&mutex_);
    CHECK(runs_.empty()) << "the lanes of an executor end while it runs";
  }
  threads_.End();
}

void Executor::AddLanes(const Program& program) {
  if (threads_.Has(program)) return;
  {
    absl::MutexLock lock(&mutex_);
    CHECK(runs_.empty()) << "a lane is made while others run";
  }
  threads_.Add(program);
}

absl::Status Executor::Prepare(const std::vector<const Program*>& programs,
                               int64_t scratch_bytes) {
  for (const Program* const program : programs) {
    if (program != nullptr) AddLanes(*program);
  }
  threads_.AwaitPrepared();
  if (device_ == nullptr) return absl::OkStatus();
  device_->PrepareQueue(QueueWork::kCopies);
  device_->PrepareScratch(scratch_bytes);
  return device_->Synchronize();
}

absl::Status Executor::Run(const Program& program, const ProgramRunner& runner,
                           RankTimeline* timeline) {
  RETURN_IF_ERROR(Start(program, runner, timeline));
  return Await().status();
}

absl::Status Executor::Start(const Program& program, ProgramRunner runner,
                             RankTimeline* timeline) {
  auto run = std::make_unique<ProgramRun>(program, table_, std::move(runner),
                                          timeline);
  AddLanes(program);
  RETURN_IF_ERROR(run->Begin(clock_, device_));
  std::vector<LaneWork> ready;
  {
    absl::MutexLock lock(&mutex_);
    if (!aborted_.ok()) return aborted_;
    CHECK(runs_.size() < 2) << "an executor has two runs in progress at most";
    ProgramRun* const before = runs_.empty() ? nullptr : runs_.back().get();
    CHECK(before == nullptr || before->issued() || !before->status().ok())
        << "a run begins before the last one is issued";
    ready = run->Start(/*first=*/before == nullptr || before->ended());
    if (before != nullptr) run->TakeFailure(*before);
    runs_.push_back(std::move(run));
  }
  threads_.Send(ready);
  return absl::OkStatus();
}

absl::Status Executor::Follow() {
  ProgramRun* run = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    CHECK(!runs_.empty()) << "there is no run to follow";
    run = runs_.back().get();
    const auto issued = [run] { return run->issued() || !run->status().ok(); };
    mutex_.Await(absl::Condition(&issued));
    if (!run->status().ok())
      return absl::CancelledError("the run before failed");
  }
  // All is issued, so nobody else changes fences; and the run stays until this
  // thread awaits it. These are calls to a driver, which an abort, that takes
  // the lock, must not wait for.
  run->Join();
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Executor::Await() {
  std::function<void()> tell;
  absl::StatusOr<int64_t> ended_ns;
  {
    absl::MutexLock lock(&mutex_);
    CHECK(!runs_.empty()) << "there is no run to wait for";
    ProgramRun& run = *runs_.front();
    const auto ended = [&run] { return run.ended(); };
    mutex_.Await(absl::Condition(&ended));
    if (!run.status().ok()) {
      const auto all_ended = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
        return runs_.back()->ended();
      };
      mutex_.Await(absl::Condition(&all_ended));
      const absl::Status status = run.status();
      runs_.clear();
      return status;
    }
    CHECK(run.done()) << "nothing runs and nothing may start";
    ended_ns = run.ended_ns();
    runs_.pop_front();
    tell = ToTell();
  }
  if (tell) tell();
  return ended_ns;
}

int Executor::in_progress() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(runs_.size());
}

void Executor::RunLane(const LaneWork& work) {
  ProgramRun& run = *work.run;
  int instruction = work.instruction;
  std::vector<LaneWork> released;
  {
    absl::MutexLock lock(&mutex_);
    if (run.status().ok()) {
      run.Take(instruction, clock_.MonotonicNanos());
    } else {
      released = EndOne(run);
      instruction = -1;
    }
  }
  threads_.Send(released);
  while (instruction >= 0) {
    instruction =
        run.OnDevice(instruction)
            ? Issue(run, instruction)
            : Finish(run, instruction, run.RunOnHost(instruction, device_));
  }
}

int Executor::Issue(ProgramRun& run, int instruction) {
  const absl::Status status = run.RunOnDevice(instruction);
  if (!status.ok()) {
    // Nothing that it enqueued may be under way when the run has ended; what
    // the lane enqueued before may wait for a peer, until it is made to end.
    FailIn(run, instruction, status);
    device_->Synchronize().IgnoreError();
    return Finish(run, instruction, status);
  }
  ProgramRun::HandedOut out;
  {
    absl::MutexLock lock(&mutex_);
    out = run.Issue(instruction, clock_.MonotonicNanos());
  }
  threads_.Send(out.wake);
  threads_.SendIssued({&run, instruction});
  return out.own;
}

int Executor::Finish(ProgramRun& run, int instruction,
                     const absl::Status& status) {
  if (!status.ok()) FailIn(run, instruction, status);
  ProgramRun::HandedOut out;
  std::vector<LaneWork> released;
  {
    absl::MutexLock lock(&mutex_);
    out = run.Finish(instruction, clock_.MonotonicNanos());
    released = EndOne(run);
  }
  threads_.Send(out.wake);
  threads_.Send(released);
  return out.own;
}

std::vector<LaneWork> Executor::EndOne(ProgramRun& run) {
  if (!run.EndOne(clock_)) return {};
  ended_ns_ = run.ended_ns();
  step_ = run.step();
  ProgramRun& next = *runs_.back();
  if (&next == &run) return {};
  return next.TakeHeld(run.ended_ns());
}

void Executor::FailIn(ProgramRun& run, int instruction,
                      const absl::Status& why) {
  std::function<void()> tell;
  {
    absl::MutexLock lock(&mutex_);
    if (!run.status().ok()) return;
    run.Fail(Annotate(
        why, InstructionWords(run.program().instructions(instruction))));
    if (runs_.front().get() == &run) runs_.back()->TakeFailure(run);
    tell = ToTell();
  }
  if (tell) tell();
}

std::function<void()> Executor::ToTell() {
  for (const auto& run : runs_) {
    // What is issued may end well.
    if (!run->status().ok() || !run->ended()) return run->ToTell();
  }
  return nullptr;
}

void Executor::Abort(const absl::Status& why) {
  CHECK(!why.ok());
  std::function<void()> tell;
  {
    absl::MutexLock lock(&mutex_);
    if (!aborted_.ok()) return;
    aborted_ = why;
    for (const auto& run : runs_) {
      if (run->status().ok() && !run->ended()) run->Fail(why);
    }
    tell = ToTell();
  }
  if (tell) tell();
}

const ProgramRun* Executor::Current() const {
  for (const auto& run : runs_) {
    if (!run->ended()) return run.get();
  }
  return nullptr;
}

RankProgress Executor::Progress() const {
  absl::MutexLock lock(&mutex_);
  const int64_t now_ns = clock_.MonotonicNanos();
  const ProgramRun* const run = Current();
  if (run != nullptr) return run->Progress(now_ns, ended_ns_);
  RankProgress progress;
  progress.set_step(step_);
  progress.set_step_seconds((now_ns - ended_ns_) * 1e-9);
  return progress;
}

}  // namespace troupe
