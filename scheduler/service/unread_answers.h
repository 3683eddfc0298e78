// How much of the large answers that clients asked for they have not read yet.
// gRPC keeps an answer until the client takes it, and one that asks for many
// and reads none would have the scheduler keep them all. So each client has a
// share of a bound (client_share.h), and gets no other large answer as long as
// it is used up. Thread-safe.
#ifndef TROUPE_SCHEDULER_SERVICE_UNREAD_ANSWERS_H_
#define TROUPE_SCHEDULER_SERVICE_UNREAD_ANSWERS_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "scheduler/cluster/client_share.h"

namespace troupe {

class UnreadAnswers {
 public:
  static constexpr int64_t kBytesMax = int64_t{256} << 20;

  explicit UnreadAnswers(int64_t bytes_max = kBytesMax)
      : bytes_max_(bytes_max) {}

  // ResourceExhausted where what it has left unread is its share.
  absl::Status MayAnswer(const std::string& client) const {
    absl::MutexLock lock(&mutex_);
    const auto it = unread_.find(client);
    if (it == unread_.end()) return absl::OkStatus();
    const int64_t share =
        ClientShare(static_cast<int>(bytes_max_ >> 10),
                    static_cast<int>((all_ - it->second) >> 10));
    if (it->second >> 10 < share) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat("answers of ", it->second >> 10, " KiB that ", client,
                     " asked for wait to be read; read those first"));
  }

  void Add(const std::string& client, int64_t bytes) {
    absl::MutexLock lock(&mutex_);
    unread_[client] += bytes;
    all_ += bytes;
  }
  // It has been read, or the client is gone.
  void Remove(const std::string& client, int64_t bytes) {
    absl::MutexLock lock(&mutex_);
    all_ -= bytes;
    const auto it = unread_.find(client);
    it->second -= bytes;
    if (it->second == 0) unread_.erase(it);
  }

 private:
  const int64_t bytes_max_;
  mutable absl::Mutex mutex_;
  std::map<std::string, int64_t> unread_ ABSL_GUARDED_BY(mutex_);
  int64_t all_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SERVICE_UNREAD_ANSWERS_H_
