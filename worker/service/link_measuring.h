// One MeasureLinks request from start to end, on a thread of its own: joins the
// other ranks over Gloo, measures (calibrate/host_links.h), and answers with
// LinksMeasured, also where that failed; not where it was told to stop.
#ifndef TROUPE_WORKER_SERVICE_LINK_MEASURING_H_
#define TROUPE_WORKER_SERVICE_LINK_MEASURING_H_

#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "proto/worker.pb.h"
#include "worker/calibrate/host_links.h"
#include "worker/collective/communicator.h"
#include "worker/collective/join_abort.h"
#include "worker/service/scheduler_store.h"

namespace troupe {

class LinkMeasuring {
 public:
  // `address`: where peers reach this worker.
  LinkMeasuring(const MeasureLinks& request, SendToScheduler send,
                std::string address);
  // Ends it at once, whatever its peers do.
  ~LinkMeasuring();

  int64_t number() const { return request_.measurement(); }
  // Of its rendezvous; those of others are dropped. Thread-safe.
  void OnValue(const StoreValue& value);

 private:
  void Run();
  absl::StatusOr<HostLinks> Measure();

  const MeasureLinks request_;
  const SendToScheduler send_;
  const std::string address_;
  SchedulerStore store_;
  JoinAbort join_abort_;
  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<Communicator> communicator_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_SERVICE_LINK_MEASURING_H_
