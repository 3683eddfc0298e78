// The scheduler's key-value store as the ranks of one attempt see it: keys go
// out as StoreSet and StoreGet, values come back as StoreValue messages, which
// the reader of the session hands to OnValue.
#ifndef TROUPE_WORKER_SERVICE_SCHEDULER_STORE_H_
#define TROUPE_WORKER_SERVICE_SCHEDULER_STORE_H_

#include <functional>
#include <map>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "proto/base/steady_time.h"
#include "proto/worker.pb.h"
#include "worker/collective/key_value_store.h"

namespace troupe {

// How a part of the worker sends to the scheduler: Session::Send.
using SendToScheduler = std::function<absl::Status(WorkerMessage)>;

// Thread-safe.
class SchedulerStore final : public KeyValueStore {
 public:
  SchedulerStore(RankRef ref, SendToScheduler send);

  absl::Status Set(absl::string_view key, absl::string_view value) override;
  absl::StatusOr<std::string> Get(absl::string_view key,
                                  absl::Duration timeout) override;
  absl::StatusOr<std::string> SetFirst(absl::string_view key,
                                       absl::string_view value,
                                       absl::string_view behind) override;
  absl::Status Erase(absl::string_view prefix) override;
  void Forget(absl::string_view prefix) override;

  void OnValue(const StoreValue& value);
  // Every wait and every later call returns `why`, which is not OK.
  void Abort(const absl::Status& why);

 private:
  const RankRef ref_;
  const SendToScheduler send_;
  absl::Mutex mutex_;
  SteadyCondition changed_;
  std::map<std::string, std::string, std::less<>> values_
      ABSL_GUARDED_BY(mutex_);
  std::set<std::string, std::less<>> lost_ ABSL_GUARDED_BY(mutex_);
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe

#endif  // TROUPE_WORKER_SERVICE_SCHEDULER_STORE_H_
