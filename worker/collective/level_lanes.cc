#include "worker/collective/level_lanes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/plan/way_bytes.h"
#include "worker/actor/thread_name.h"

namespace troupe {

int LaneOrder::lanes() const {
  return lane_of_step.empty()
             ? 1
             : 1 + *std::max_element(lane_of_step.begin(), lane_of_step.end());
}

Range LaneOrder::RangeOf(int64_t piece, int64_t elements) const {
  return EvenPiece(elements, {.index = static_cast<int>(piece),
                              .count = static_cast<int>(pieces)});
}

LaneOrder OrderOf(const Group::Way& way, int64_t pieces) {
  LaneOrder order = {.pieces = pieces, .at_once = PiecesAtOnce(way)};
  if (!Overlaps(way)) {
    order.lane_of_step.assign(way.steps_size(), 0);
    order.distance = way.steps_size();
    return order;
  }
  std::vector<int> levels;  // by lane
  for (const Group::Step& step : way.steps()) {
    const auto found = std::find(levels.begin(), levels.end(), step.level());
    order.lane_of_step.push_back(static_cast<int>(found - levels.begin()));
    if (found == levels.end()) levels.push_back(step.level());
  }
  return order;
}

LevelLanes::LevelLanes(int lanes) {
  for (int lane = 1; lane < lanes; ++lane) {
    threads_.emplace_back([this, lane] { Loop(lane); });
  }
}

LevelLanes::~LevelLanes() {
  {
    absl::MutexLock lock(&mutex_);
    over_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

absl::Status LevelLanes::Run(const LaneOrder& order, const Execute& execute,
                             const Settle& settle) {
  CHECK_LE(order.lanes(), static_cast<int>(threads_.size()) + 1);
  Work work = {.order = order, .execute = execute, .settle = settle};
  work.done.assign(order.lane_of_step.size(), 0);
  const bool together = order.lanes() > 1;
  if (together) {
    absl::MutexLock lock(&mutex_);
    work.running = static_cast<int>(threads_.size());
    work_ = &work;
    ++calls_;
  }
  RunLane(0, work);
  absl::MutexLock lock(&mutex_);
  const auto ended = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return work.running == 0;
  };
  mutex_.Await(absl::Condition(&ended));
  work_ = nullptr;
  return work.status;
}

void LevelLanes::Loop(int lane) {
  NameThisThread(absl::StrCat("comm level ", lane));
  int64_t seen = 0;
  while (true) {
    Work* work = nullptr;
    {
      absl::MutexLock lock(&mutex_);
      const auto called = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
        return over_ || calls_ != seen;
      };
      mutex_.Await(absl::Condition(&called));
      if (over_) return;
      seen = calls_;
      work = work_;
    }
    RunLane(lane, *work);
    absl::MutexLock lock(&mutex_);
    --work->running;
  }
}

bool LevelLanes::MayBegin(const Work& work, int64_t piece, int step) {
  absl::MutexLock lock(&mutex_);
  const auto ready = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    if (!work.status.ok()) return true;
    return step > 0 ? work.done[step - 1] > piece
                    : work.done.back() > piece - work.order.at_once;
  };
  mutex_.Await(absl::Condition(&ready));
  return work.status.ok();
}

void LevelLanes::RunLane(int lane, Work& work) {
  work.order.ForEach(lane, [&](int64_t piece, int step) {
    if (!MayBegin(work, piece, step)) return false;
    const absl::Status status = work.execute(piece, step);
    bool first = false;
    {
      absl::MutexLock lock(&mutex_);
      if (status.ok()) {
        ++work.done[step];
      } else if (work.status.ok()) {
        work.status = status;
        first = true;
      }
    }
    if (!first) return status.ok();
    absl::Status settled = work.settle(status);
    absl::MutexLock lock(&mutex_);
    work.status = std::move(settled);
    return false;
  });
}

}  // namespace troupe
