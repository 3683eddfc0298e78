#include "worker/engine/executor.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/program_text.h"

namespace troupe {

// One run of a program. Lanes may look at it without the lock as long as an
// instruction of theirs counts as running: Run waits for that count.
struct Executor::RunState {
  RunState(const Program& program_in, const ProgramRunner& runner_in)
      : program(program_in), runner(runner_in), queue(program_in) {}

  const Program& program;
  const ProgramRunner& runner;
  ReadyQueue queue;
  int running = 0;  // handed out and not finished
  absl::Status status;
  RankTimeline* timeline = nullptr;
  int64_t origin_ns = 0;
  std::map<int, int64_t> started_ns;  // by lane, of its current instruction
  std::map<int, int> last_finished;   // by lane
};

Executor::Executor(const Clock& clock) : clock_(clock) {}

Executor::~Executor() {
  absl::MutexLock lock(&mutex_);
  CHECK(run_ == nullptr) << "an executor was destroyed while it runs";
}

void Executor::MakeLanes(const Program& program) {
  for (const Instruction& instruction : program.instructions()) {
    const int lane = instruction.lane();
    if (lanes_.count(lane) > 0) continue;
    lanes_[lane] = std::make_unique<LaneActor>(
        ActorOptions{.name = absl::StrCat("lane ", Lane_Name(lane)),
                     .capacity = 1},
        [this, lane](int instruction) { RunLane(lane, instruction); });
  }
}

absl::Status Executor::Run(const Program& program, const ProgramRunner& runner,
                           RankTimeline* timeline) {
  MakeLanes(program);
  std::vector<int> ready;
  {
    absl::MutexLock lock(&mutex_);
    CHECK(run_ == nullptr) << "an executor runs one program at a time";
    if (!aborted_.ok()) return aborted_;
    run_ = std::make_unique<RunState>(program, runner);
    run_->timeline = timeline;
    run_->origin_ns = clock_.MonotonicNanos();
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
  mutex_.Await(absl::Condition(
      +[](Executor* self) { return self->run_->running == 0; }, this));
  const std::unique_ptr<RunState> run = std::move(run_);
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
    run->started_ns[lane] = clock_.MonotonicNanos();
  }
  while (instruction >= 0) {
    instruction = Finish(lane, instruction, run->runner.run(instruction));
  }
}

int Executor::Finish(int lane, int instruction, const absl::Status& status) {
  if (!status.ok()) {
    const Program* program = nullptr;
    {
      absl::MutexLock lock(&mutex_);
      program = &run_->program;
    }
    Fail(
        Annotate(status, InstructionWords(program->instructions(instruction))));
  }
  int own = -1;
  std::vector<std::pair<int, int>> wake;  // lane and instruction
  {
    absl::MutexLock lock(&mutex_);
    RunState& run = *run_;
    const int64_t now_ns = clock_.MonotonicNanos();
    --run.running;
    if (!run.status.ok()) return -1;
    if (run.timeline != nullptr) {
      const Instruction& done = run.program.instructions(instruction);
      Span& span = *run.timeline->add_spans();
      span.set_instruction(instruction);
      span.set_kind(done.kind());
      span.set_lane(done.lane());
      if (done.has_unit()) span.set_unit(done.unit());
      span.set_unit_count(done.unit_count());
      if (done.has_micro_batch()) span.set_micro_batch(done.micro_batch());
      span.set_start_ns(run.started_ns[lane] - run.origin_ns);
      span.set_end_ns(now_ns - run.origin_ns);
    }
    run.last_finished[lane] = instruction;
    run.started_ns.erase(lane);
    for (const int next : run.queue.Finish(instruction)) {
      ++run.running;
      const int next_lane = run.program.instructions(next).lane();
      if (next_lane == lane) {
        own = next;
        run.started_ns[lane] = now_ns;
      } else {
        wake.push_back({next_lane, next});
      }
    }
  }
  for (const auto& [other, next] : wake) lanes_.at(other)->Send(next);
  return own;
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

std::string Executor::Describe() const {
  absl::MutexLock lock(&mutex_);
  if (run_ == nullptr) return "";
  const int64_t now_ns = clock_.MonotonicNanos();
  std::vector<std::string> lines;
  for (const ReadyQueue::LaneHead& head : run_->queue.Heads()) {
    std::string line = absl::StrCat(
        Lane_Name(head.lane), head.running ? " runs " : " waits with ",
        InstructionWords(run_->program.instructions(head.instruction)));
    const auto started = run_->started_ns.find(head.lane);
    if (head.running && started != run_->started_ns.end()) {
      absl::StrAppendFormat(&line, " for %.1f s",
                            (now_ns - started->second) * 1e-9);
    }
    if (!head.waits_for.empty()) {
      absl::StrAppend(
          &line, " for ",
          InstructionWords(run_->program.instructions(head.waits_for.front())));
    }
    const auto last = run_->last_finished.find(head.lane);
    if (last != run_->last_finished.end()) {
      absl::StrAppend(
          &line, " (last: ",
          InstructionWords(run_->program.instructions(last->second)), ")");
    }
    lines.push_back(std::move(line));
  }
  return absl::StrJoin(lines, "; ");
}

}  // namespace troupe
