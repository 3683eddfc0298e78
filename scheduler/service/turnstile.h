// Serves requests of clients at the rate that each may have (request_rate.h):
// those that come in time at once, on the caller's thread, the others later, on
// a thread of its own, one after another.
//
//   turnstile.Enter(client, [=](const absl::Status& status) { ... answer ...
//   });
#ifndef TROUPE_SCHEDULER_SERVICE_TURNSTILE_H_
#define TROUPE_SCHEDULER_SERVICE_TURNSTILE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "proto/base/clock.h"
#include "proto/base/steady_time.h"
#include "scheduler/service/request_rate.h"

namespace troupe {

class Turnstile {
 public:
  // Called once, with OK when its turn has come; ResourceExhausted: the client
  // has too many that wait; Unavailable: Stop came first.
  using Serve = std::function<void(const absl::Status&)>;

  explicit Turnstile(const RequestRateOptions& options = {});
  ~Turnstile();

  // Thread-safe.
  void Enter(const std::string& client, Serve serve);
  // Whether the client may begin something that cannot wait, as a stream;
  // counts as a request where it may.
  absl::Status EnterNow(const std::string& client);

  // Ends those that wait, and lets nobody in any more.
  void Stop();

 private:
  void Loop();

  const RealClock clock_;
  absl::Mutex mutex_;
  RequestRate rate_ ABSL_GUARDED_BY(mutex_);
  std::multimap<int64_t, Serve> waiting_ ABSL_GUARDED_BY(mutex_);  // when due
  SteadyCondition stops_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SERVICE_TURNSTILE_H_
