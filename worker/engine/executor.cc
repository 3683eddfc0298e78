#include "worker/engine/executor.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/program_text.h"
#include "proto/plan/span.h"
#include "worker/engine/lane_log.h"
#include "worker/engine/step_fences.h"
#include "worker/rank/resident_memory.h"

namespace troupe {
namespace {

// Instructions that a lane may have issued and not done: enough to keep the
// device busy, whatever the host does meanwhile.
constexpr int kIssuedMax = 256;

QueueWork WorkOf(Lane::Kind kind) {
  switch (kind) {
    case Lane::COMPUTE:
      return QueueWork::kProducts;
    case Lane::TRANSFER:
    case Lane::IO:
      return QueueWork::kCopies;
    default:
      return QueueWork::kFences;
  }
}

}  // namespace

// One run of a program. Lanes may look at it without the lock as long as an
// instruction of theirs counts as running: Await waits for that count.
struct Executor::RunState {
  RunState(const Program& program_in, const Lanes& lanes,
           ProgramRunner runner_in)
      : program(program_in),
        table(lanes),
        runner(std::move(runner_in)),
        queue(program_in, lanes),
        log(program_in, queue),
        not_issued(program_in.instructions_size()) {}

  bool ended() const { return running == 0; }
  // Of the run before, which takes this one along.
  void TakeFailure(const RunState& before) {
    if (before.status.ok() || !status.ok()) return;
    status = before.status;
    told = true;
  }

  // Takes what the queue has handed out: the lane's own next one or -1, and
  // what to send to other lanes.
  struct HandedOut {
    int own = -1;
    std::vector<LaneWork> wake;
  };
  HandedOut HandOut(int lane, const std::vector<int>& ready, int64_t now_ns);
  void AddSpan(int instruction, int64_t now_ns);

  const Program& program;
  const Lanes& table;
  const ProgramRunner runner;
  ReadyQueue queue;
  LaneLog log;
  int running = 0;        // handed out and not finished
  int not_issued;         // nor finished
  std::vector<int> held;  // handed out when the run before has ended
  absl::Status status;
  bool told = false;  // that it failed
  RankTimeline* timeline = nullptr;
  int64_t origin_ns = 0;
  int64_t ended_ns = 0;
  std::optional<StepFences> fences;  // on an asynchronous device
};

Executor::RunState::HandedOut Executor::RunState::HandOut(
    int lane, const std::vector<int>& ready, int64_t now_ns) {
  HandedOut out;
  for (const int next : ready) {
    ++running;
    if (program.instructions(next).lane() == lane) {
      out.own = next;
      log.Start(next, now_ns);
    } else {
      out.wake.push_back({this, next});
    }
  }
  return out;
}

void Executor::RunState::AddSpan(int instruction, int64_t now_ns) {
  if (timeline == nullptr) return;
  Span& span = *timeline->add_spans() =
      SpanOf(program.instructions(instruction), instruction);
  if (fences.has_value() && IsDeviceLane(table[span.lane()])) {
    // By the device's clock, which agrees with ours to some microseconds; but
    // nothing runs before it is issued.
    const int64_t issued_ns = log.StartOf(instruction) - origin_ns;
    const StepFences::Nanos times = fences->Times(instruction);
    span.set_start_ns(std::max(times.start, issued_ns));
    span.set_end_ns(std::max(times.end, issued_ns));
  } else {
    span.set_start_ns(log.StartOf(instruction) - origin_ns);
    span.set_end_ns(now_ns - origin_ns);
  }
}

Executor::Executor(const Clock& clock, Lanes lanes, Device* device)
    : clock_(clock),
      table_(std::move(lanes)),
      device_(device != nullptr && device->asynchronous() ? device : nullptr),
      ended_ns_(clock.MonotonicNanos()) {}

Executor::~Executor() {
  absl::MutexLock lock(&mutex_);
  CHECK(runs_.empty()) << "an executor was destroyed while it runs";
}

void Executor::EndLanes() {
  {
    absl::MutexLock lock(&mutex_);
    CHECK(runs_.empty()) << "the lanes of an executor end while it runs";
  }
  lanes_.clear();
  waiters_.clear();
}

void Executor::StartLanes(const Program& program) {
  for (const Instruction& instruction : program.instructions()) {
    const int lane = instruction.lane();
    if (lanes_.count(lane) > 0) continue;
    const Lane& row = table_[lane];
    {
      absl::MutexLock lock(&mutex_);
      CHECK(runs_.empty()) << "a lane is made while others run";
      ++starting_;
    }
    lanes_[lane] = std::make_unique<LaneActor>(
        ActorOptions{.name = absl::StrCat("lane ", row.name()),
                     .capacity = 1,
                     .at_start = [this, lane] { PrepareLane(lane); },
                     .at_end = ReleaseFreeMemoryOfThread},
        [this, lane](LaneWork work) { RunLane(lane, work); });
    if (!OnDevice(lane)) continue;
    waiters_[lane] = std::make_unique<LaneActor>(
        ActorOptions{.name = absl::StrCat("done ", row.name()),
                     .capacity = kIssuedMax},
        [this, lane](LaneWork work) { AwaitEnd(lane, work); });
  }
}

void Executor::PrepareLane(int lane) {
  if (OnDevice(lane)) device_->SetQueuePriority(table_[lane].priority());
  // The host's lanes wait for those of the device.
  if (device_ != nullptr) device_->PrepareQueue(WorkOf(table_[lane].kind()));
  absl::MutexLock lock(&mutex_);
  --starting_;
}

absl::Status Executor::Prepare(const std::vector<const Program*>& programs,
                               int64_t scratch_bytes) {
  for (const Program* const program : programs) {
    if (program != nullptr) StartLanes(*program);
  }
  {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](int* starting) { return *starting == 0; }, &starting_));
  }
  if (device_ == nullptr) return absl::OkStatus();
  device_->PrepareQueue(QueueWork::kCopies);
  device_->PrepareScratch(scratch_bytes);
  return device_->Synchronize();
}

bool Executor::OnDevice(int lane) const {
  return device_ != nullptr && IsDeviceLane(table_[lane]);
}

absl::Status Executor::Run(const Program& program, const ProgramRunner& runner,
                           RankTimeline* timeline) {
  RETURN_IF_ERROR(Start(program, runner, timeline));
  return Await().status();
}

absl::Status Executor::Start(const Program& program, ProgramRunner runner,
                             RankTimeline* timeline) {
  auto state = std::make_unique<RunState>(program, table_, std::move(runner));
  StartLanes(program);
  state->origin_ns = clock_.MonotonicNanos();
  if (device_ != nullptr) {
    state->fences.emplace(*device_, program, /*timed=*/timeline != nullptr);
    ASSIGN_OR_RETURN(state->origin_ns, state->fences->Begin(clock_));
  }
  if (timeline != nullptr) {
    timeline->set_start_unix_ns(absl::ToUnixNanos(clock_.Now()));
  }
  state->timeline = timeline;
  std::vector<LaneWork> ready;
  {
    absl::MutexLock lock(&mutex_);
    if (!aborted_.ok()) return aborted_;
    CHECK(runs_.size() < 2) << "an executor has two runs in progress at most";
    RunState* const before = runs_.empty() ? nullptr : runs_.back().get();
    CHECK(before == nullptr || before->not_issued == 0 || !before->status.ok())
        << "a run begins before the last one is issued";
    const bool first = before == nullptr || before->ended();
    for (const int index : state->queue.Start()) {
      ++state->running;
      if (first || OnDevice(program.instructions(index).lane())) {
        ready.push_back({state.get(), index});
      } else {
        state->held.push_back(index);
      }
    }
    if (before != nullptr) state->TakeFailure(*before);
    if (state->ended()) state->ended_ns = state->origin_ns;
    runs_.push_back(std::move(state));
  }
  Send(ready);
  return absl::OkStatus();
}

absl::Status Executor::Follow() {
  RunState* run = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    CHECK(!runs_.empty()) << "there is no run to follow";
    run = runs_.back().get();
    const auto issued = [run] {
      return run->not_issued == 0 || !run->status.ok();
    };
    mutex_.Await(absl::Condition(&issued));
    if (!run->status.ok()) return absl::CancelledError("the run before failed");
  }
  // All is issued, so nobody else changes fences; and the run stays until this
  // thread awaits it. These are calls to a driver, which an abort, that takes
  // the lock, must not wait for.
  if (run->fences.has_value()) run->fences->Join();
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Executor::Await() {
  std::function<void()> tell;
  absl::StatusOr<int64_t> ended_ns;
  {
    absl::MutexLock lock(&mutex_);
    CHECK(!runs_.empty()) << "there is no run to wait for";
    RunState& run = *runs_.front();
    const auto ended = [&run] { return run.ended(); };
    mutex_.Await(absl::Condition(&ended));
    if (!run.status.ok()) {
      const auto all_ended = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
        return runs_.back()->ended();
      };
      mutex_.Await(absl::Condition(&all_ended));
      const absl::Status status = run.status;
      runs_.clear();
      return status;
    }
    CHECK(run.queue.done()) << "nothing runs and nothing may start";
    ended_ns = run.ended_ns;
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

void Executor::RunLane(int lane, LaneWork work) {
  RunState& run = *work.run;
  int instruction = work.instruction;
  std::vector<LaneWork> released;
  {
    absl::MutexLock lock(&mutex_);
    if (run.status.ok()) {
      run.log.Start(instruction, clock_.MonotonicNanos());
    } else {
      released = EndOne(run);
      instruction = -1;
    }
  }
  Send(released);
  while (instruction >= 0) {
    if (OnDevice(lane)) {
      instruction = Issue(run, lane, instruction);
      continue;
    }
    if (run.fences.has_value()) run.fences->Enter(instruction);
    absl::Status status = run.runner.run(instruction);
    if (status.ok() && device_ != nullptr) {
      status = OutcomeOf(run, instruction, device_->Synchronize());
    }
    instruction = Finish(run, lane, instruction, status);
  }
}

int Executor::Issue(RunState& run, int lane, int instruction) {
  run.fences->Enter(instruction);
  const absl::Status status = run.runner.run(instruction);
  if (!status.ok()) {
    // Nothing that it enqueued may be under way when the run has ended; what
    // the lane enqueued before may wait for a peer, until it is made to end.
    FailIn(run, instruction, status);
    device_->Synchronize().IgnoreError();
    return Finish(run, lane, instruction, status);
  }
  run.fences->Leave(instruction);
  RunState::HandedOut out;
  {
    absl::MutexLock lock(&mutex_);
    const int64_t now_ns = clock_.MonotonicNanos();
    run.log.Issue(instruction, now_ns);
    --run.not_issued;
    if (run.status.ok()) {
      out = run.HandOut(lane, run.queue.Issue(instruction), now_ns);
    }
  }
  Send(out.wake);
  waiters_.at(lane)->Send({&run, instruction});
  return out.own;
}

void Executor::AwaitEnd(int lane, LaneWork work) {
  const int instruction = work.instruction;
  Finish(
      *work.run, lane, instruction,
      OutcomeOf(*work.run, instruction, work.run->fences->Await(instruction)));
}

absl::Status Executor::OutcomeOf(const RunState& run, int instruction,
                                 const absl::Status& queue) {
  return run.runner.outcome ? run.runner.outcome(instruction, queue) : queue;
}

int Executor::Finish(RunState& run, int lane, int instruction,
                     const absl::Status& status) {
  if (!status.ok()) FailIn(run, instruction, status);
  RunState::HandedOut out;
  std::vector<LaneWork> released;
  {
    absl::MutexLock lock(&mutex_);
    const int64_t now_ns = clock_.MonotonicNanos();
    if (run.status.ok()) {
      run.AddSpan(instruction, now_ns);
      run.log.Finish(instruction, now_ns);
      if (!OnDevice(lane)) --run.not_issued;
      out = run.HandOut(lane, run.queue.Finish(instruction), now_ns);
    }
    released = EndOne(run);
  }
  Send(out.wake);
  Send(released);
  return out.own;
}

std::vector<Executor::LaneWork> Executor::EndOne(RunState& run) {
  if (--run.running > 0) return {};
  ended_ns_ = run.ended_ns = clock_.MonotonicNanos();
  step_ = run.runner.step;
  std::vector<LaneWork> released;
  if (runs_.back().get() == &run) return released;
  RunState& next = *runs_.back();
  next.log.Begin(run.ended_ns);
  for (const int index : std::exchange(next.held, {})) {
    released.push_back({&next, index});
  }
  return released;
}

void Executor::Send(const std::vector<LaneWork>& work) {
  for (const LaneWork& next : work) {
    lanes_.at(next.run->program.instructions(next.instruction).lane())
        ->Send(next);
  }
}

void Executor::FailIn(RunState& run, int instruction, const absl::Status& why) {
  Fail(run,
       Annotate(why, InstructionWords(run.program.instructions(instruction))));
}

void Executor::Fail(RunState& run, const absl::Status& why) {
  std::function<void()> tell;
  {
    absl::MutexLock lock(&mutex_);
    if (!run.status.ok()) return;
    run.status = why;
    if (runs_.front().get() == &run) runs_.back()->TakeFailure(run);
    tell = ToTell();
  }
  if (tell) tell();
}

std::function<void()> Executor::ToTell() {
  for (const auto& run : runs_) {
    if (run->status.ok() && run->ended()) continue;
    // What is issued may end well.
    if (run->status.ok() || run->told) return nullptr;
    run->told = true;
    if (!run->runner.on_failure) return nullptr;
    return [tell = run->runner.on_failure, why = run->status] { tell(why); };
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
      if (run->status.ok() && !run->ended()) run->status = why;
    }
    tell = ToTell();
  }
  if (tell) tell();
}

const Executor::RunState* Executor::Current() const {
  for (const auto& run : runs_) {
    if (!run->ended()) return run.get();
  }
  return nullptr;
}

RankProgress Executor::Progress() const {
  absl::MutexLock lock(&mutex_);
  const int64_t now_ns = clock_.MonotonicNanos();
  RankProgress progress;
  const RunState* const run = Current();
  if (run == nullptr) {
    progress.set_step(step_);
    progress.set_step_seconds((now_ns - ended_ns_) * 1e-9);
    return progress;
  }
  progress.set_step(run->runner.step);
  progress.set_program(run->program.kind());
  progress.set_step_seconds((now_ns - std::max(run->origin_ns, ended_ns_)) *
                            1e-9);
  for (LaneProgress& lane : run->log.Progress(now_ns)) {
    *progress.add_lanes() = std::move(lane);
  }
  return progress;
}

}  // namespace troupe
