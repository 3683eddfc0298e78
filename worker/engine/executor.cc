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

}  // namespace

// One run of a program. Lanes may look at it without the lock as long as an
// instruction of theirs counts as running: Run waits for that count.
struct Executor::RunState {
  RunState(const Program& program_in, const Lanes& lanes,
           const ProgramRunner& runner_in)
      : program(program_in),
        table(lanes),
        runner(runner_in),
        queue(program_in, lanes),
        log(program_in, queue) {}

  // Takes what the queue has handed out: the lane's own next one or -1, and
  // what to send to other lanes.
  struct HandedOut {
    int own = -1;
    std::vector<std::pair<int, int>> wake;  // lane and instruction
  };
  HandedOut HandOut(int lane, const std::vector<int>& ready, int64_t now_ns);
  void AddSpan(int instruction, int64_t now_ns);

  const Program& program;
  const Lanes& table;
  const ProgramRunner& runner;
  ReadyQueue queue;
  LaneLog log;
  int running = 0;  // handed out and not finished
  absl::Status status;
  RankTimeline* timeline = nullptr;
  int64_t origin_ns = 0;
  std::optional<StepFences> fences;  // on an asynchronous device
};

Executor::RunState::HandedOut Executor::RunState::HandOut(
    int lane, const std::vector<int>& ready, int64_t now_ns) {
  HandedOut out;
  for (const int next : ready) {
    ++running;
    const int next_lane = program.instructions(next).lane();
    if (next_lane == lane) {
      out.own = next;
      log.Start(next, now_ns);
    } else {
      out.wake.push_back({next_lane, next});
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
  CHECK(run_ == nullptr) << "an executor was destroyed while it runs";
}

void Executor::EndLanes() {
  {
    absl::MutexLock lock(&mutex_);
    CHECK(run_ == nullptr) << "the lanes of an executor end while it runs";
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
      ++starting_;
    }
    lanes_[lane] = std::make_unique<LaneActor>(
        ActorOptions{.name = absl::StrCat("lane ", row.name()),
                     .capacity = 1,
                     .at_start = [this, lane] { PrepareLane(lane); },
                     .at_end = ReleaseFreeMemoryOfThread},
        [this, lane](int instruction) { RunLane(lane, instruction); });
    if (!OnDevice(lane)) continue;
    waiters_[lane] = std::make_unique<LaneActor>(
        ActorOptions{.name = absl::StrCat("done ", row.name()),
                     .capacity = kIssuedMax},
        [this, lane](int instruction) { AwaitEnd(lane, instruction); });
  }
}

void Executor::PrepareLane(int lane) {
  if (OnDevice(lane)) {
    device_->SetQueuePriority(table_[lane].priority());
    device_->PrepareQueue();
  }
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
  device_->PrepareQueue();
  device_->PrepareScratch(scratch_bytes);
  return device_->Synchronize();
}

bool Executor::OnDevice(int lane) const {
  return device_ != nullptr && IsDeviceLane(table_[lane]);
}

Executor::RunState* Executor::run() {
  absl::MutexLock lock(&mutex_);
  return run_.get();
}

absl::Status Executor::Run(const Program& program, const ProgramRunner& runner,
                           RankTimeline* timeline) {
  auto state = std::make_unique<RunState>(program, table_, runner);
  StartLanes(program);
  state->origin_ns = clock_.MonotonicNanos();
  if (device_ != nullptr) {
    state->fences.emplace(*device_, program, /*timed=*/timeline != nullptr);
    ASSIGN_OR_RETURN(state->origin_ns, state->fences->Begin(clock_));
  }
  std::vector<int> ready;
  {
    absl::MutexLock lock(&mutex_);
    CHECK(run_ == nullptr) << "an executor runs one program at a time";
    if (!aborted_.ok()) return aborted_;
    run_ = std::move(state);
    run_->timeline = timeline;
    step_ = runner.step;
    ready = run_->queue.Start();
    run_->running = static_cast<int>(ready.size());
  }
  if (timeline != nullptr) {
    timeline->set_start_unix_ns(absl::ToUnixNanos(clock_.Now()));
  }
  for (const int index : ready) {
    lanes_.at(program.instructions(index).lane())->Send(index);
  }
  absl::MutexLock lock(&mutex_);
  const auto ended = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return run_->running == 0;
  };
  mutex_.Await(absl::Condition(&ended));
  const std::unique_ptr<RunState> run = std::move(run_);
  ended_ns_ = clock_.MonotonicNanos();
  CHECK(!run->status.ok() || run->queue.done())
      << "nothing runs and nothing may start";
  return run->status;
}

void Executor::RunLane(int lane, int instruction) {
  RunState* run = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    run = run_.get();
    if (!run->status.ok()) {
      --run->running;
      return;
    }
    run->log.Start(instruction, clock_.MonotonicNanos());
  }
  while (instruction >= 0) {
    if (OnDevice(lane)) {
      instruction = Issue(lane, instruction);
      continue;
    }
    absl::Status status = run->runner.run(instruction);
    if (status.ok() && device_ != nullptr) {
      status = OutcomeOf(instruction, device_->Synchronize());
    }
    instruction = Finish(lane, instruction, status);
  }
}

int Executor::Issue(int lane, int instruction) {
  RunState& state = *run();
  state.fences->Enter(instruction);
  const absl::Status status = state.runner.run(instruction);
  if (!status.ok()) {
    // Nothing that it enqueued may be under way when the run has ended; what
    // the lane enqueued before may wait for a peer, until it is made to end.
    FailIn(instruction, status);
    device_->Synchronize().IgnoreError();
    return Finish(lane, instruction, status);
  }
  state.fences->Leave(instruction);
  RunState::HandedOut out;
  {
    absl::MutexLock lock(&mutex_);
    const int64_t now_ns = clock_.MonotonicNanos();
    state.log.Issue(instruction, now_ns);
    if (state.status.ok()) {
      out = state.HandOut(lane, state.queue.Issue(instruction), now_ns);
    }
  }
  for (const auto& [other, next] : out.wake) lanes_.at(other)->Send(next);
  waiters_.at(lane)->Send(instruction);
  return out.own;
}

void Executor::AwaitEnd(int lane, int instruction) {
  Finish(lane, instruction,
         OutcomeOf(instruction, run()->fences->Await(instruction)));
}

absl::Status Executor::OutcomeOf(int instruction, const absl::Status& queue) {
  const ProgramRunner& runner = run()->runner;
  return runner.outcome ? runner.outcome(instruction, queue) : queue;
}

int Executor::Finish(int lane, int instruction, const absl::Status& status) {
  if (!status.ok()) FailIn(instruction, status);
  RunState::HandedOut out;
  {
    absl::MutexLock lock(&mutex_);
    RunState& state = *run_;
    const int64_t now_ns = clock_.MonotonicNanos();
    --state.running;
    if (!state.status.ok()) return -1;
    state.AddSpan(instruction, now_ns);
    state.log.Finish(instruction, now_ns);
    out = state.HandOut(lane, state.queue.Finish(instruction), now_ns);
  }
  for (const auto& [other, next] : out.wake) lanes_.at(other)->Send(next);
  return out.own;
}

void Executor::FailIn(int instruction, const absl::Status& why) {
  const Program& program = run()->program;
  Fail(Annotate(why, InstructionWords(program.instructions(instruction))));
}

void Executor::Fail(const absl::Status& why) {
  std::function<void(const absl::Status&)> on_failure;
  {
    absl::MutexLock lock(&mutex_);
    if (run_ == nullptr || !run_->status.ok()) return;
    run_->status = why;
    on_failure = run_->runner.on_failure;
  }
  if (on_failure) on_failure(why);
}

void Executor::Abort(const absl::Status& why) {
  CHECK(!why.ok());
  {
    absl::MutexLock lock(&mutex_);
    if (!aborted_.ok()) return;
    aborted_ = why;
  }
  Fail(why);
}

RankProgress Executor::Progress() const {
  absl::MutexLock lock(&mutex_);
  const int64_t now_ns = clock_.MonotonicNanos();
  RankProgress progress;
  progress.set_step(step_);
  if (run_ == nullptr) {
    progress.set_step_seconds((now_ns - ended_ns_) * 1e-9);
    return progress;
  }
  progress.set_program(run_->program.kind());
  progress.set_step_seconds((now_ns - run_->origin_ns) * 1e-9);
  for (LaneProgress& lane : run_->log.Progress(now_ns)) {
    *progress.add_lanes() = std::move(lane);
  }
  return progress;
}

}  // namespace troupe
