#include "ops/cuda/first_launches.h"

namespace troupe {

void FirstLaunches::Run(const void* kernel, absl::FunctionRef<void()> launch,
                        int64_t size) {
  bool first = false;
  {
    absl::MutexLock lock(&mutex_);
    first = !launched_.contains({kernel, size});
  }
  if (!first) return launch();
  RunAlone([launch](bool) { launch(); });
  absl::MutexLock lock(&mutex_);
  launched_.insert({kernel, size});
}

void FirstLaunches::RunAlone(absl::FunctionRef<void(bool alone)> launch) {
  bool alone = false;
  {
    absl::MutexLock lock(&mutex_);
    alone = mutex_.AwaitWithTimeout(
        absl::Condition(
            +[](int* operations) { return *operations == 0; }, &operations_),
        patience_);
    ++alone_;
  }
  launch(alone);
  absl::MutexLock lock(&mutex_);
  --alone_;
}

// Those that wait to run alone do not hold it up: it may be what they wait for
// that waits for it, at a peer.
FirstLaunches::Operation::Operation(FirstLaunches& launches)
    : launches_(launches) {
  absl::MutexLock lock(&launches_.mutex_);
  launches_.mutex_.Await(absl::Condition(
      +[](int* alone) { return *alone == 0; }, &launches_.alone_));
  ++launches_.operations_;
}

FirstLaunches::Operation::~Operation() {
  absl::MutexLock lock(&launches_.mutex_);
  --launches_.operations_;
}

}  // namespace troupe
