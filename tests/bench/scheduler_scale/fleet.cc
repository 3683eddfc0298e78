#include "tests/bench/scheduler_scale/fleet.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "tests/bench/scheduler_scale/fleet_worker.h"

namespace troupe {
namespace {

constexpr absl::Duration kSlice = absl::Milliseconds(10);

}  // namespace

Fleet::Fleet(const FleetOptions& options) {
  for (int i = 0; i < options.workers; ++i) {
    workers_.push_back(std::make_unique<FleetWorker>(*this, options, i));
  }
  heartbeats_ = std::thread([this] { Heartbeats(); });
}

Fleet::~Fleet() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  heartbeats_.join();
  for (const auto& worker : workers_) worker->Leave();
  const int all = static_cast<int>(workers_.size());
  // A stream that gRPC still uses must not go away.
  while (!Await([all](const Progress& p) { return p.gone == all; },
                absl::Seconds(10))) {
  }
}

Fleet::Progress Fleet::progress() const {
  absl::MutexLock lock(&mutex_);
  return progress_;
}

// Spread over the interval, as those of workers that started by themselves are.
void Fleet::Heartbeats() {
  double due = 0;
  size_t next = 0;
  absl::Time before = absl::Now();
  while (true) {
    absl::Duration interval;
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), kSlice)) return;
      interval = progress_.heartbeat;
    }
    const absl::Time now = absl::Now();
    if (interval > absl::ZeroDuration()) {
      due += absl::FDivDuration(now - before, interval) *
             static_cast<double>(workers_.size());
    }
    before = now;
    for (due = std::min<double>(due, workers_.size()); due >= 1; --due) {
      workers_[next++ % workers_.size()]->Heartbeat();
    }
  }
}

void Fleet::ReportStep(int64_t step) {
  for (const auto& worker : workers_) worker->ReportStep(step);
}

absl::Duration Fleet::StoreRoundTrip(int worker) {
  return workers_.at(worker)->StoreRoundTrip();
}

}  // namespace troupe
