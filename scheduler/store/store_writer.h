// Writes behind the scheduler's back: the hot path only queues, one thread
// commits what has gathered. A job's row is written as soon as the disk is
// free, steps and events a few times a second. An RPC that must not answer
// before its effect is durable asks Flush to be told.
//
// When the disk fails, what is queued is kept and tried again each second; a
// job's rows coalesce, those of forgotten jobs go, and past kRowsMax the oldest
// steps are given up, with a warning, so that the queue is bounded.
//
// Thread-safe.
#ifndef TROUPE_SCHEDULER_STORE_STORE_WRITER_H_
#define TROUPE_SCHEDULER_STORE_STORE_WRITER_H_

#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/base/steady_time.h"
#include "scheduler/cluster/action.h"
#include "scheduler/store/store.h"

namespace troupe {

class StoreWriter {
 public:
  using Done = std::function<void(const absl::Status&)>;

  // Borrows the store, which only this thread uses from here on.
  explicit StoreWriter(Store& store);
  // Writes what is queued, once, and answers every Flush.
  ~StoreWriter();

  // Queues the Persist actions; the others are not its business.
  void Add(const Actions& actions);

  // Calls `done` on the writer's thread when all that was added before is on
  // the disk, or could not be written.
  void Flush(Done done);

  // Of the last write.
  absl::Status health() const;
  size_t jobs_queued() const {
    absl::MutexLock lock(&mutex_);
    return pending_.jobs.size();
  }

  static constexpr size_t kRowsMax = 1 << 18;
  static constexpr absl::Duration kInterval = absl::Milliseconds(200);
  static constexpr absl::Duration kRetry = absl::Seconds(1);

 private:
  void Loop();
  void WriteOnce();
  // Puts a batch that was not written before what has come since.
  void PutBack(StoreBatch batch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropForgotten() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Bound() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasUrgent() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !flushes_.empty() ||
           (health_.ok() && !pending_.jobs.empty());
  }

  Store& store_;
  mutable absl::Mutex mutex_;
  SteadyCondition urgent_;
  StoreBatch pending_ ABSL_GUARDED_BY(mutex_);
  std::vector<Done> flushes_ ABSL_GUARDED_BY(mutex_);
  absl::Status health_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: starts when all else is there
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_STORE_STORE_WRITER_H_
