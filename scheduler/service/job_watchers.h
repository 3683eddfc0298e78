// The streams of WatchJob. A change of a job only marks it, under the host's
// lock; a thread of their own then asks the host, for each stream, what it has
// not seen yet, so that slow clients cost nobody anything and many changes
// become one message.
#ifndef TROUPE_SCHEDULER_SERVICE_JOB_WATCHERS_H_
#define TROUPE_SCHEDULER_SERVICE_JOB_WATCHERS_H_

#include <map>
#include <set>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/grpcpp.h"
#include "proto/scheduler.pb.h"
#include "scheduler/cluster/host.h"

namespace troupe {

class JobWatch;

class JobWatchers final : public ActionSink {
 public:
  // Borrows the host.
  explicit JobWatchers(ClusterHost& host);
  // REQUIRES: all streams are done.
  ~JobWatchers() override;

  // A new stream of this client; ends with NOT_FOUND where there is no such
  // job, with RESOURCE_EXHAUSTED where there are too many.
  grpc::ServerWriteReactor<WatchJobResponse>* Watch(
      const std::string& client, const WatchJobRequest& request);

  static constexpr int kWatchesMax = 1000;
  static constexpr int kWatchesOfClientMax = 100;

  // NotifyJob; the other actions are not its business.
  void Carry(const Actions& actions) override;

 private:
  friend class JobWatch;
  void Loop();
  void Detach(JobWatch* watch);

  ClusterHost& host_;

  absl::Mutex changed_mutex_;
  std::set<JobId> changed_ ABSL_GUARDED_BY(changed_mutex_);
  bool stopping_ ABSL_GUARDED_BY(changed_mutex_) = false;

  absl::Mutex mutex_;  // before a stream's, which is before the host's
  std::multimap<JobId, JobWatch*> watches_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int> of_client_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SERVICE_JOB_WATCHERS_H_
