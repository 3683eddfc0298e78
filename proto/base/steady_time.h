// Time for what must not hang on the wall clock: deadlines, leases, heartbeats,
// waits. The wall clock may step (NTP, a person, a machine that wakes up), and
// the timed waits of absl::Mutex and absl::Notification last until a time of
// it: where it steps back in the middle of one, so much longer. The clock here
// only grows, and stands still while the machine is suspended.
//
//   const absl::Time deadline = SteadyNow() + timeout;
//   absl::MutexLock lock(&mutex_);
//   const bool in_time = changed_.Await(mutex_, deadline - SteadyNow(),
//                                       [this] { return !queue_.empty(); });
//   ...
//   queue_.push_back(message);   // with the mutex held
//   changed_.Say();
//
// Times for people, and those that other programs write (files, certificates),
// are of the wall clock (clock.h).
#ifndef TROUPE_PROTO_BASE_STEADY_TIME_H_
#define TROUPE_PROTO_BASE_STEADY_TIME_H_

#include <condition_variable>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace troupe {

// Counted from an arbitrary origin: to be compared with other times of this
// function in this process, and with nothing else.
absl::Time SteadyNow();

// What a thread waits for may have become true.
class SteadyCondition {
 public:
  // Waits until `done`, which is asked with the mutex held, first at once and
  // then whenever Say was called, or until `limit` has passed. What it says
  // then. REQUIRES: all waits on this object are with the same mutex.
  bool Await(absl::Mutex& mutex, absl::Duration limit,
             absl::FunctionRef<bool()> done)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  // Wakes all that wait. Best called with the mutex held under which something
  // changed: a thread that waits may end this object's life.
  void Say() { woken_.notify_all(); }

 private:
  std::condition_variable_any woken_;
};

// As absl::Notification.
class SteadyNotification {
 public:
  SteadyNotification() = default;
  ~SteadyNotification();
  SteadyNotification(const SteadyNotification&) = delete;
  SteadyNotification& operator=(const SteadyNotification&) = delete;

  bool HasBeenNotified() const ABSL_LOCKS_EXCLUDED(mutex_);
  void WaitForNotification() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether it came in time.
  bool WaitForNotificationWithTimeout(absl::Duration limit) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Once.
  void Notify() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  mutable SteadyCondition came_;
  bool notified_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace troupe

#endif  // TROUPE_PROTO_BASE_STEADY_TIME_H_
