// Writes one thing at a time beside the thread that asks for it: how a rank
// trains on while its checkpoint goes to disk.
//
//   BackgroundWriter writer;
//   RETURN_IF_ERROR(writer.AwaitIdle());   // the copy is free again
//   ... copies the state ...
//   writer.Start([&] { return checkpoints.Write(snapshot); });
//   ... trains on, and asks writer.status() now and then ...
//   RETURN_IF_ERROR(writer.AwaitIdle());   // at the end
//
// What a write uses must outlive it: declare a writer after that.
#ifndef TROUPE_WORKER_ENGINE_BACKGROUND_WRITER_H_
#define TROUPE_WORKER_ENGINE_BACKGROUND_WRITER_H_

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "worker/actor/actor.h"

namespace troupe {

class BackgroundWriter {
 public:
  using Write = absl::AnyInvocable<absl::Status()>;

  BackgroundWriter();
  // Waits for the write in progress; its error is lost.
  ~BackgroundWriter();
  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;

  // Waits until nothing is being written. The first error of any write.
  absl::Status AwaitIdle() ABSL_LOCKS_EXCLUDED(mutex_);

  // Begins the write, on the writer's thread. REQUIRES that it is idle.
  void Start(Write write) ABSL_LOCKS_EXCLUDED(mutex_);

  // The first error of the writes that have ended; does not wait.
  absl::Status status() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run(Write write);

  mutable absl::Mutex mutex_;
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  Actor<Write> thread_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_BACKGROUND_WRITER_H_
