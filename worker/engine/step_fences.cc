#include "worker/engine/step_fences.h"

#include "proto/base/check.h"
#include "proto/base/status.h"

namespace troupe {

StepFences::StepFences(Device& device, const Program& program, bool timed)
    : device_(device),
      program_(program),
      use_(timed ? FenceUse::kTiming : FenceUse::kOrder),
      starts_(program.instructions_size()),
      ends_(program.instructions_size()) {
  CHECK(device.asynchronous()) << device.Describe();
}

absl::StatusOr<int64_t> StepFences::Begin(const Clock& clock) {
  RETURN_IF_ERROR(device_.Synchronize());
  const int64_t origin_ns = clock.MonotonicNanos();
  if (use_ == FenceUse::kTiming) {
    origin_ = device_.Record(use_);
    RETURN_IF_ERROR(origin_->Await());
  }
  return origin_ns;
}

void StepFences::Enter(int instruction) {
  const Instruction& entered = program_.instructions(instruction);
  for (const int earlier : entered.after()) {
    // Its own lane's queue keeps the order; a host lane's work has ended.
    if (program_.instructions(earlier).lane() == entered.lane()) continue;
    if (ends_[earlier] != nullptr) device_.WaitFor(*ends_[earlier]);
  }
  if (use_ == FenceUse::kTiming) starts_[instruction] = device_.Record(use_);
}

void StepFences::Leave(int instruction) {
  ends_[instruction] = device_.Record(use_);
}

absl::Status StepFences::Await(int instruction) {
  return ends_[instruction]->Await();
}

StepFences::Nanos StepFences::Times(int instruction) const {
  return {.start = starts_[instruction]->NanosSince(*origin_),
          .end = ends_[instruction]->NanosSince(*origin_)};
}

}  // namespace troupe
