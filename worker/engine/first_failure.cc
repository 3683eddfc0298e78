#include "worker/engine/first_failure.h"

namespace troupe {

absl::Status FirstFailure::Attach(
    const std::vector<std::unique_ptr<Communicator>>& communicators) {
  absl::MutexLock lock(&mutex_);
  if (!aborted_.ok()) return aborted_;
  for (const auto& communicator : communicators) {
    if (communicator != nullptr) communicators_.push_back(communicator.get());
  }
  return absl::OkStatus();
}

bool FirstFailure::Aborted(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  if (!aborted_.ok()) return false;
  aborted_ = why;
  return true;
}

void FirstFailure::FailedIn(const absl::Status& why) {
  {
    absl::MutexLock lock(&mutex_);
    failed_first_ |= aborted_.ok() && !MissingRank(why).has_value();
  }
  EndWaits(why);
}

void FirstFailure::EndWaits(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  for (Communicator* communicator : communicators_) communicator->Abort(why);
}

absl::Status FirstFailure::aborted() const {
  absl::MutexLock lock(&mutex_);
  return aborted_;
}

absl::Status FirstFailure::ReasonOf(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  communicators_.clear();
  const bool broken = !status.ok() && !aborted_.ok() && !failed_first_;
  return broken ? aborted_ : status;
}

}  // namespace troupe
