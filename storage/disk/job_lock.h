// The lock by which one job at a time writes in a place (file_lock.h), kept by
// the job from its start to its end. An attempt of the job takes it from an
// earlier attempt, whose process may still be there (a stopped one).
#ifndef TROUPE_STORAGE_DISK_JOB_LOCK_H_
#define TROUPE_STORAGE_DISK_JOB_LOCK_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "storage/disk/file_lock.h"

namespace troupe {

struct JobLockOptions {
  std::string directory;  // that it is for, as messages have it
  std::string name;       // of the lock's file in it
  std::string holder;     // "job 3, pid 17 on host7", for others' messages
  // In the line of a holder that is an earlier attempt of the same job, and
  // loses the lock. Empty: there is none.
  std::string supersedes = "";
  std::string writes;  // "its checkpoints", for messages
};

// FailedPrecondition, with the directory and the holder, where another job has
// it; the message says what to do. Nothing where the file system has no locks,
// which costs a warning in the log. Other errors are FileLock's.
absl::StatusOr<std::optional<FileLock>> TakeJobLock(
    const JobLockOptions& options);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DISK_JOB_LOCK_H_
