// One scheduler a state directory: the lock is an flock on DIR/lock, which the
// kernel drops when the process ends, however it ends. The file holds the
// holder's pid, for the message that a second one gets.
#ifndef TROUPE_SCHEDULER_STORE_STATE_LOCK_H_
#define TROUPE_SCHEDULER_STORE_STATE_LOCK_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace troupe {

class StateLock {
 public:
  // Creates the directory where it is missing. FAILED_PRECONDITION names the
  // process that holds the lock; PERMISSION_DENIED, INTERNAL: the directory
  // cannot be made or written, and why.
  static absl::StatusOr<std::unique_ptr<StateLock>> Take(
      const std::string& directory);

  ~StateLock();
  StateLock(const StateLock&) = delete;
  StateLock& operator=(const StateLock&) = delete;

 private:
  explicit StateLock(int fd) : fd_(fd) {}
  const int fd_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_STORE_STATE_LOCK_H_
