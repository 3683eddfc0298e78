// Where the members of a group find each other: each sets a few small values
// under names that the others wait for. Between daemons the store is the
// scheduler's, through worker/service; within one process it is an
// InMemoryStore.
#ifndef TROUPE_WORKER_COLLECTIVE_KEY_VALUE_STORE_H_
#define TROUPE_WORKER_COLLECTIVE_KEY_VALUE_STORE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace troupe {

// Thread-safe.
class KeyValueStore {
 public:
  virtual ~KeyValueStore() = default;
  // A key is set once. AlreadyExists: it has another value; a key names one
  // communicator of one attempt. ResourceExhausted: the store is full.
  virtual absl::Status Set(absl::string_view key, absl::string_view value) = 0;
  // Waits until the key is set. DeadlineExceeded names the key and the wait; a
  // store that was aborted returns the reason.
  virtual absl::StatusOr<std::string> Get(absl::string_view key,
                                          absl::Duration timeout) = 0;
  // Sets the key unless it is set, and returns the value that it has. So of
  // members that want the same key one wins, and all know which. `behind`:
  // another key, which must be set where this one is not; DataLoss where it is
  // not: the store has forgotten what was set.
  virtual absl::StatusOr<std::string> SetFirst(absl::string_view key,
                                               absl::string_view value,
                                               absl::string_view behind);
  // Forgets all keys that begin so: for which no member will ask any more, and
  // for which this one will not.
  virtual absl::Status Erase(absl::string_view prefix);
  virtual void Forget(absl::string_view prefix) {}
  // What the first caller made under this key, for all that ask for it through
  // this very object; the store keeps it as long as it lives. As here:
  // FailedPrecondition, a store whose members are not threads of one process.
  virtual absl::StatusOr<std::shared_ptr<void>> Share(
      absl::string_view key, absl::FunctionRef<std::shared_ptr<void>()> make);
};

// Of a SetFirst.
absl::Status ForgotBehind(absl::string_view key, absl::string_view behind);

// A store for the threads of one process.
class InMemoryStore final : public KeyValueStore {
 public:
  // Holds keys and values of `bytes_max` bytes together at most.
  explicit InMemoryStore(int64_t bytes_max = int64_t{16} << 20);

  absl::Status Set(absl::string_view key, absl::string_view value) override;
  absl::StatusOr<std::string> Get(absl::string_view key,
                                  absl::Duration timeout) override;
  absl::StatusOr<std::string> SetFirst(absl::string_view key,
                                       absl::string_view value,
                                       absl::string_view behind) override;
  absl::Status Erase(absl::string_view prefix) override;
  absl::StatusOr<std::shared_ptr<void>> Share(
      absl::string_view key,
      absl::FunctionRef<std::shared_ptr<void>()> make) override;
  // Every wait and every later call returns `why`, which is not OK.
  void Abort(const absl::Status& why);

 private:
  absl::Status Add(absl::string_view key, absl::string_view value)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t bytes_max_;
  absl::Mutex mutex_;
  std::map<std::string, std::string, std::less<>> values_
      ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<void>, std::less<>> shared_
      ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_KEY_VALUE_STORE_H_
