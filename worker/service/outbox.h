// What a rank has to say, from its start until the scheduler has it on its
// disk. It lives as long as the rank and its last words do, while sessions come
// and go: what is not known to be stored is said again in the next one, in the
// order in which the rank said it. The scheduler knows what it has heard before
// (scheduler/cluster/run_adopt.cc).
//
//   Outbox outbox;
//   outbox.Attach(send);          // a session: says what is kept, then goes on
//   outbox.Send(message);         // by the rank
//   outbox.OnMessage(message);    // by the session's reader
//   outbox.Detach();              // before the session goes away
//
// Kept is
//
//   StepReport            until its step is Stored; its timeline is for people
//                         who look now, and is said once or not at all
//   RankReady, StoreSet   until Stored says that all ranks are ready
//   StoreGet              until its StoreValue comes; so a StoreSet of a key
//                         that several may set
//   CheckpointShard, CheckpointUnwritten
//                         only the last of them, until the checkpoint is
//                         committed: from the answers to one that was given up
//                         the next scheduler learns that it was
//   CheckpointCommitted   until one that is not `unstored`, or until Stored
//                         says so: else the next scheduler would not know of
//                         the checkpoint
//   RankEnded             until Stored says so; what it keeps only until it is
//                         told to give that up
//
// and everything else (Leaving) is said now or never.
//
// While there is no session the rank goes on, up to kWaitingBytesMax: some
// hundred thousand steps. Then it waits for one, as it waits for a scheduler
// that does not read. What was said and is not known to be stored has the same
// bound, but waits for nobody's disk: past it the oldest reports of steps and
// commits are no longer kept, and are lost if the scheduler dies before it
// writes them.
#ifndef TROUPE_WORKER_SERVICE_OUTBOX_H_
#define TROUPE_WORKER_SERVICE_OUTBOX_H_

#include <cstdint>
#include <deque>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "proto/worker.pb.h"
#include "worker/service/scheduler_store.h"

namespace troupe {

// Thread-safe.
class Outbox {
 public:
  static constexpr size_t kWaitingBytesMax = 64 << 20;

  explicit Outbox(size_t bytes_max = kWaitingBytesMax)
      : bytes_max_(bytes_max) {}

  // Says it, now or when there is a session; what is not kept is Unavailable
  // without one. Waits while too much waits. Once it was closed: why.
  absl::Status Send(WorkerMessage message);

  // From here on `send` says what is kept and what comes. REQUIRES: detached.
  void Attach(SendToScheduler send);
  // Returns when `send` is no longer called, which must not wait for long then.
  void Detach();

  // What the scheduler says to this rank: what need not be kept any more.
  void OnMessage(const SchedulerMessage& message);

  // The rank's last words are with the scheduler, or it has no use for them.
  bool done() const;
  // Nothing is kept or sent any more; a thread that waits in Send returns. For
  // what the scheduler has forgotten (dropping: Send says OK), and for the end
  // of the worker (Send says why).
  void Forget();
  void Close(const absl::Status& why);

 private:
  struct Entry {
    WorkerMessage message;
    size_t bytes = 0;
  };

  // Says what waits, unless another thread is at it.
  void Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasRoom() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return done_ || !closed_.ok() || waiting_bytes_ < bytes_max_;
  }
  void Drop(absl::FunctionRef<bool(const WorkerMessage&)> which)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Keeps no more of what was said than the bound allows.
  void BoundSaid() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t bytes_max_;
  mutable absl::Mutex mutex_;
  SendToScheduler send_ ABSL_GUARDED_BY(mutex_);  // null: no session
  bool pumping_ ABSL_GUARDED_BY(mutex_) = false;
  // What was said in this session comes first.
  std::deque<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  size_t said_ ABSL_GUARDED_BY(mutex_) = 0;  // of the entries
  size_t said_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe

#endif  // TROUPE_WORKER_SERVICE_OUTBOX_H_
