// Ends a rank's wait for its peers to join, from another thread: the code that
// waits says how the wait is interrupted.
//
//   const JoinAbort::Interrupt interrupt(
//       seat.abort,
//       [&](const absl::Status& why) { communicator->Abort(why); });
//   RETURN_IF_ERROR(communicator->Join(...));
//
// Waits for the store end with the store's own abort.
#ifndef TROUPE_WORKER_COLLECTIVE_JOIN_ABORT_H_
#define TROUPE_WORKER_COLLECTIVE_JOIN_ABORT_H_

#include <functional>
#include <list>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace troupe {

// Thread-safe.
class JoinAbort {
 public:
  using Callback = std::function<void(const absl::Status& why)>;

  // Interrupts all waits, now and from now on. `why` is an error; the first one
  // stays.
  void Abort(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

  // The reason, or OK.
  absl::Status status() const ABSL_LOCKS_EXCLUDED(mutex_);

  // While it lives an abort calls `callback`, on the aborting thread; here and
  // at once, where that has been already. Ends when the callback has returned.
  class Interrupt {
   public:
    // `abort` may be null: nobody interrupts.
    Interrupt(JoinAbort* abort, Callback callback);
    ~Interrupt();
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;

   private:
    JoinAbort* const abort_;
    std::list<Callback>::iterator place_;
  };

 private:
  mutable absl::Mutex mutex_;
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);
  std::list<Callback> callbacks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_JOIN_ABORT_H_
