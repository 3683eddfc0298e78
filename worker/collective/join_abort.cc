#include "worker/collective/join_abort.h"

#include <utility>

#include "proto/base/check.h"

namespace troupe {

void JoinAbort::Abort(const absl::Status& why) {
  CHECK(!why.ok()) << "an abort needs a reason";
  absl::MutexLock lock(&mutex_);
  if (!aborted_.ok()) return;
  aborted_ = why;
  for (const Callback& callback : callbacks_) callback(why);
}

absl::Status JoinAbort::status() const {
  absl::MutexLock lock(&mutex_);
  return aborted_;
}

JoinAbort::Interrupt::Interrupt(JoinAbort* abort, Callback callback)
    : abort_(abort) {
  if (abort_ == nullptr) return;
  absl::MutexLock lock(&abort_->mutex_);
  place_ =
      abort_->callbacks_.insert(abort_->callbacks_.end(), std::move(callback));
  if (!abort_->aborted_.ok()) (*place_)(abort_->aborted_);
}

JoinAbort::Interrupt::~Interrupt() {
  if (abort_ == nullptr) return;
  absl::MutexLock lock(&abort_->mutex_);
  abort_->callbacks_.erase(place_);
}

}  // namespace troupe
