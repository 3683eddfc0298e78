#include "proto/base/steady_time.h"

#include <algorithm>
#include <chrono>

namespace troupe {
namespace {

using SteadyClock = std::chrono::steady_clock;

// As good as none: no sum with it overflows.
constexpr absl::Duration kForever = absl::Hours(24 * 365);

// As the standard library names it.
class Lockable {
 public:
  explicit Lockable(absl::Mutex& mutex) : mutex_(mutex) {}
  void lock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex_.Lock(); }
  void unlock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex_.Unlock(); }

 private:
  absl::Mutex& mutex_;
};

}  // namespace

absl::Time SteadyNow() {
  return absl::UnixEpoch() +
         absl::FromChrono(SteadyClock::now().time_since_epoch());
}

bool SteadyCondition::Await(absl::Mutex& mutex, absl::Duration limit,
                            absl::FunctionRef<bool()> done) {
  Lockable lockable(mutex);
  limit = std::clamp(limit, absl::ZeroDuration(), kForever);
  return woken_.wait_until(
      lockable, SteadyClock::now() + absl::ToChronoNanoseconds(limit), done);
}

// Takes the mutex, so that a thread that notifies is done with it.
SteadyNotification::~SteadyNotification() { absl::MutexLock lock(&mutex_); }

bool SteadyNotification::HasBeenNotified() const {
  absl::MutexLock lock(&mutex_);
  return notified_;
}

void SteadyNotification::WaitForNotification() const {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&notified_));
}

bool SteadyNotification::WaitForNotificationWithTimeout(
    absl::Duration limit) const {
  absl::MutexLock lock(&mutex_);
  return came_.Await(
      mutex_, limit,
      [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return notified_; });
}

void SteadyNotification::Notify() {
  absl::MutexLock lock(&mutex_);
  notified_ = true;
  came_.Say();
}

}  // namespace troupe
