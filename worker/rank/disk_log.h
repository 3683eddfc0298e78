// What a rank's disk does for it now, for those that ask how far the rank has
// come: code that reads or writes for long says so, and tells of the bytes as
// the disk gives or takes them. An abort cuts it short.
//
//   const DiskLog::Entry entry(disk.log, {.writes = true, .bytes = n});
//   RETURN_IF_ERROR(WriteShardFile(disk.io, ..., entry.moved()));
#ifndef TROUPE_WORKER_RANK_DISK_LOG_H_
#define TROUPE_WORKER_RANK_DISK_LOG_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "proto/base/clock.h"
#include "proto/worker.pb.h"
#include "storage/engine/engine.h"

namespace troupe {

// Thread-safe.
class DiskLog {
 public:
  // Borrows the clock.
  explicit DiskLog(const Clock& clock) : clock_(clock) {}

  struct Work {
    bool writes = false;  // else it reads
    int64_t step = 0;     // of the checkpoint
    int64_t bytes = 0;    // that are to be read or written
  };
  // In the log while it lives; one at a time.
  class Entry {
   public:
    Entry(DiskLog& log, const Work& work) : log_(log) { log.Begin(work); }
    ~Entry() { log_.End(); }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

    // To be told of the bytes; returns the reason of an abort. Not after this.
    OnBytesMoved moved() const {
      return [&log = log_](uint64_t bytes) { return log.Add(bytes); };
    }

   private:
    DiskLog& log_;
  };

  // Ends what is in the log, and all that comes, with `why`, which is an error.
  void Abort(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

  // The reason of an abort; OK: there was none.
  absl::Status aborted() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Nothing: the disk has nothing to do.
  absl::optional<DiskProgress> Progress() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Begin(const Work& work) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Add(uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  void End() ABSL_LOCKS_EXCLUDED(mutex_);

  const Clock& clock_;
  mutable absl::Mutex mutex_;
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);
  absl::optional<Work> work_ ABSL_GUARDED_BY(mutex_);
  int64_t begin_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

// What a rank reads and writes with.
struct RankDisk {
  IoEngine& io;
  DiskLog& log;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_DISK_LOG_H_
