// One scheduler a state directory: a lock (storage/disk/file_lock.h) on
// DIR/lock, which holds the holder's pid and host, for the message that a
// second one gets.
#ifndef TROUPE_SCHEDULER_STORE_STATE_LOCK_H_
#define TROUPE_SCHEDULER_STORE_STATE_LOCK_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "storage/disk/file_lock.h"

namespace troupe {

class StateLock {
 public:
  // Creates the directory where it is missing. FAILED_PRECONDITION names the
  // process that holds the lock; other errors say why the directory cannot be
  // made or written.
  static absl::StatusOr<std::unique_ptr<StateLock>> Take(
      const std::string& directory);

 private:
  explicit StateLock(FileLock lock) : lock_(std::move(lock)) {}
  const FileLock lock_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_STORE_STATE_LOCK_H_
