#include "worker/engine/program_run.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "proto/base/status.h"
#include "proto/plan/span.h"

namespace troupe {

ProgramRun::ProgramRun(const Program& program, const Lanes& lanes,
                       ProgramRunner runner, RankTimeline* timeline)
    : program_(program),
      lanes_(lanes),
      runner_(std::move(runner)),
      timeline_(timeline),
      queue_(program, lanes),
      log_(program, queue_),
      not_issued_(program.instructions_size()) {}

absl::Status ProgramRun::Begin(const Clock& clock, Device* device) {
  origin_ns_ = clock.MonotonicNanos();
  if (device != nullptr) {
    fences_.emplace(*device, program_, /*timed=*/timeline_ != nullptr);
    ASSIGN_OR_RETURN(origin_ns_, fences_->Begin(clock));
  }
  if (timeline_ != nullptr) {
    timeline_->set_start_unix_ns(absl::ToUnixNanos(clock.Now()));
  }
  return absl::OkStatus();
}

bool ProgramRun::OnDevice(int instruction) const {
  return fences_.has_value() && IsDeviceLane(lanes_[LaneOf(instruction)]);
}

absl::Status ProgramRun::RunOnHost(int instruction, Device* device) {
  if (fences_.has_value()) fences_->Enter(instruction);
  const absl::Status status = runner_.run(instruction);
  if (!status.ok() || device == nullptr) return status;
  return OutcomeOf(instruction, device->Synchronize());
}

absl::Status ProgramRun::RunOnDevice(int instruction) {
  fences_->Enter(instruction);
  RETURN_IF_ERROR(runner_.run(instruction));
  fences_->Leave(instruction);
  return absl::OkStatus();
}

absl::Status ProgramRun::Await(int instruction) {
  return OutcomeOf(instruction, fences_->Await(instruction));
}

absl::Status ProgramRun::OutcomeOf(int instruction,
                                   const absl::Status& queue) const {
  return runner_.outcome ? runner_.outcome(instruction, queue) : queue;
}

void ProgramRun::Join() {
  if (fences_.has_value()) fences_->Join();
}

std::vector<LaneWork> ProgramRun::Start(bool first) {
  std::vector<LaneWork> ready;
  for (const int index : queue_.Start()) {
    ++running_;
    (first || OnDevice(index) ? ready : held_).push_back({this, index});
  }
  if (ended()) ended_ns_ = origin_ns_;
  return ready;
}

std::vector<LaneWork> ProgramRun::TakeHeld(int64_t now_ns) {
  log_.Begin(now_ns);
  return std::exchange(held_, {});
}

ProgramRun::HandedOut ProgramRun::HandOut(int lane,
                                          const std::vector<int>& ready,
                                          int64_t now_ns) {
  HandedOut out;
  for (const int next : ready) {
    ++running_;
    if (LaneOf(next) == lane) {
      out.own = next;
      log_.Start(next, now_ns);
    } else {
      out.wake.push_back({this, next});
    }
  }
  return out;
}

ProgramRun::HandedOut ProgramRun::Issue(int instruction, int64_t now_ns) {
  log_.Issue(instruction, now_ns);
  --not_issued_;
  if (!status_.ok()) return {};
  return HandOut(LaneOf(instruction), queue_.Issue(instruction), now_ns);
}

ProgramRun::HandedOut ProgramRun::Finish(int instruction, int64_t now_ns) {
  if (!status_.ok()) return {};
  AddSpan(instruction, now_ns);
  log_.Finish(instruction, now_ns);
  if (!OnDevice(instruction)) --not_issued_;
  return HandOut(LaneOf(instruction), queue_.Finish(instruction), now_ns);
}

void ProgramRun::AddSpan(int instruction, int64_t now_ns) {
  if (timeline_ == nullptr) return;
  Span& span = *timeline_->add_spans() =
      SpanOf(program_.instructions(instruction), instruction);
  if (OnDevice(instruction)) {
    // By the device's clock, which agrees with ours to some microseconds; but
    // nothing runs before it is issued.
    const int64_t issued_ns = log_.StartOf(instruction) - origin_ns_;
    const StepFences::Nanos times = fences_->Times(instruction);
    span.set_start_ns(std::max(times.start, issued_ns));
    span.set_end_ns(std::max(times.end, issued_ns));
  } else {
    span.set_start_ns(log_.StartOf(instruction) - origin_ns_);
    span.set_end_ns(now_ns - origin_ns_);
  }
}

bool ProgramRun::EndOne(const Clock& clock) {
  if (--running_ > 0) return false;
  ended_ns_ = clock.MonotonicNanos();
  return true;
}

void ProgramRun::TakeFailure(const ProgramRun& before) {
  if (before.status_.ok() || !status_.ok()) return;
  status_ = before.status_;
  told_ = true;
}

std::function<void()> ProgramRun::ToTell() {
  if (status_.ok() || told_) return nullptr;
  told_ = true;
  if (!runner_.on_failure) return nullptr;
  return [tell = runner_.on_failure, why = status_] { tell(why); };
}

RankProgress ProgramRun::Progress(int64_t now_ns, int64_t ended_ns) const {
  RankProgress progress;
  progress.set_step(step());
  progress.set_program(program_.kind());
  progress.set_step_seconds((now_ns - std::max(origin_ns_, ended_ns)) * 1e-9);
  for (LaneProgress& lane : log_.Progress(now_ns)) {
    *progress.add_lanes() = std::move(lane);
  }
  return progress;
}

}  // namespace troupe
