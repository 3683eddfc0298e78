#include "worker/engine/lane_threads.h"

#include <utility>

#include "absl/strings/str_cat.h"
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

LaneThreads::LaneThreads(const Lanes& lanes, Device* device, Handlers handlers)
    : table_(lanes), device_(device), handlers_(std::move(handlers)) {}

bool LaneThreads::Has(const Program& program) const {
  for (const Instruction& instruction : program.instructions()) {
    if (lanes_.count(instruction.lane()) == 0) return false;
  }
  return true;
}

void LaneThreads::Add(const Program& program) {
  for (const Instruction& instruction : program.instructions()) {
    const int lane = instruction.lane();
    if (lanes_.count(lane) == 0) AddLane(lane);
  }
}

void LaneThreads::AddLane(int lane) {
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
      handlers_.run);
  if (!OnDevice(lane)) return;
  waiters_[lane] = std::make_unique<LaneActor>(
      ActorOptions{.name = absl::StrCat("done ", row.name()),
                   .capacity = kIssuedMax},
      handlers_.await);
}

void LaneThreads::PrepareLane(int lane) {
  if (OnDevice(lane)) device_->SetQueuePriority(table_[lane].priority());
  // The host's lanes wait for those of the device.
  if (device_ != nullptr) device_->PrepareQueue(WorkOf(table_[lane].kind()));
  absl::MutexLock lock(&mutex_);
  --starting_;
}

void LaneThreads::AwaitPrepared() {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(
      +[](int* starting) { return *starting == 0; }, &starting_));
}

void LaneThreads::End() {
  lanes_.clear();
  waiters_.clear();
}

}  // namespace troupe
