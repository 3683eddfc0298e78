// Why a rank's run has failed. Several may say so: an instruction of its own,
// an abort from elsewhere, and all that an abort breaks, which fails in many
// ways. This keeps which came first, and ends the waits for peers: the rank's
// communicators are aborted at the first of them.
//
//   FirstFailure failure;
//   RETURN_IF_ERROR(failure.Attach(communicators));
//   failure.FailedIn(why);                     // an instruction
//   if (failure.Aborted(why)) { ...; failure.EndWaits(why); }
//   return failure.ReasonOf(status);           // at the end
//
// Any thread.
#ifndef TROUPE_WORKER_ENGINE_FIRST_FAILURE_H_
#define TROUPE_WORKER_ENGINE_FIRST_FAILURE_H_

#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "worker/collective/communicator.h"

namespace troupe {

class FirstFailure {
 public:
  // Borrows those that are there, until ReasonOf: the waits to end. The reason
  // of an abort that came before.
  absl::Status Attach(
      const std::vector<std::unique_ptr<Communicator>>& communicators)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The run is aborted from elsewhere. Whether this is the first abort.
  bool Aborted(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // An instruction has failed, maybe because of an abort. Ends the waits.
  void FailedIn(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  // Aborts the communicators.
  void EndWaits(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

  // Of the first abort; OK: there was none.
  absl::Status aborted() const ABSL_LOCKS_EXCLUDED(mutex_);

  // What to say of a run that has ended so: the reason of an abort stands for
  // all that it broke. From here on nobody aborts the communicators.
  absl::Status ReasonOf(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);
  // By itself, not for another rank, and before any abort: others that noticed
  // may have it aborted before it could say so.
  bool failed_first_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Communicator*> communicators_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_FIRST_FAILURE_H_
