#include "worker/engine/step_fences.h"

#include <map>
#include <set>

#include "proto/base/check.h"
#include "proto/base/status.h"

namespace troupe {

StepFences::StepFences(Device& device, const Program& program, bool timed)
    : device_(device),
      program_(program),
      use_(timed ? FenceUse::kTiming : FenceUse::kOrder),
      is_first_in_lane_(program.instructions_size()),
      starts_(program.instructions_size()),
      ends_(program.instructions_size()) {
  CHECK(device.asynchronous()) << device.Describe();
  std::set<int> lanes;
  for (int i = 0; i < program.instructions_size(); ++i) {
    is_first_in_lane_[i] = lanes.insert(program.instructions(i).lane()).second;
  }
}

absl::StatusOr<int64_t> StepFences::Begin(const Clock& clock) {
  const bool timed = use_ == FenceUse::kTiming;
  if (timed) RETURN_IF_ERROR(device_.Synchronize());
  const int64_t origin_ns = clock.MonotonicNanos();
  origin_ = device_.Record(use_);
  if (timed) RETURN_IF_ERROR(origin_->Await());
  return origin_ns;
}

void StepFences::Enter(int instruction) {
  const Instruction& entered = program_.instructions(instruction);
  if (is_first_in_lane_[instruction]) device_.WaitFor(*origin_);
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

void StepFences::Join() {
  // The last one of each lane is behind the others.
  std::map<int, const Fence*> last;
  for (int i = 0; i < program_.instructions_size(); ++i) {
    if (ends_[i] == nullptr) continue;  // the host's, or never issued
    last[program_.instructions(i).lane()] = ends_[i].get();
  }
  for (const auto& [lane, end] : last) device_.WaitFor(*end);
}

StepFences::Nanos StepFences::Times(int instruction) const {
  return {.start = starts_[instruction]->NanosSince(*origin_),
          .end = ends_[instruction]->NanosSince(*origin_)};
}

}  // namespace troupe
