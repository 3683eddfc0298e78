// The Workers service: one stream for each worker, and the table through which
// the cluster's messages find it. What a worker says becomes an event; the end
// of its stream is the event Disconnected.
//
// Under the host's lock a message is only queued; a thread of its own completes
// it (scheduler/cluster/hand_out.h) and begins to send it, so that a thousand
// assignments at once hold nobody up.
//
// Locks: the host's comes first, then the table's, then a stream's.
#ifndef TROUPE_SCHEDULER_SERVICE_WORKER_SESSIONS_H_
#define TROUPE_SCHEDULER_SERVICE_WORKER_SESSIONS_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "proto/base/clock.h"
#include "proto/worker.grpc.pb.h"
#include "scheduler/cluster/host.h"

namespace troupe {

class WorkerSession;

class WorkerSessions final : public Workers::CallbackService,
                             public ActionSink {
 public:
  // Calls its argument once all that was handed to the sinks is durable, or
  // with the reason why it is not.
  using FlushFunction =
      std::function<void(std::function<void(const absl::Status&)>)>;

  struct Options {
    absl::Duration register_max;  // for a stream to register
    // A certificate that says no worker's name is good for any.
    bool takes_unnamed = false;
  };
  // Borrows the first two.
  WorkerSessions(ClusterHost& host, const JobCompiler& compiler,
                 FlushFunction flush, const Options& options);
  // REQUIRES: all streams are done, and Stop has returned.
  ~WorkerSessions() override = default;

  grpc::ServerBidiReactor<WorkerMessage, SchedulerMessage>* Session(
      grpc::CallbackServerContext* context) override;

  // SendToWorker, SendWhenStored, DropWorker and AwaitStored; the other actions
  // are not its business.
  void Carry(const Actions& actions) override;

  // From here on streams that end are the server's doing: no events.
  void Stopping() { stopping_ = true; }
  // From here on nothing is sent. Returns when the store has answered all that
  // it was asked, whose answers are events, and their actions go to all sinks.
  void Stop();

  // Messages that may wait for one worker.
  static constexpr size_t kQueueMax = 1 << 16;
  // Streams that have not registered yet.
  static constexpr size_t kUnregisteredMax = 1024;

 private:
  friend class WorkerSession;
  void Attach(WorkerId id, std::shared_ptr<WorkerSession> session);
  // It has been here for long enough without a word.
  void EndUnregistered() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The session is about to go away.
  void Detach(WorkerId id, const WorkerSession* session);
  void SendLoop();
  void Store(const AwaitStored& start);
  void Store(std::vector<SendWhenStored> sends);

  ClusterHost& host_;
  const JobCompiler& compiler_;
  const FlushFunction flush_;
  const absl::Duration register_max_;
  const bool takes_unnamed_;
  const RealClock clock_;
  std::atomic<bool> stopping_ = false;
  absl::Mutex mutex_;
  std::map<WorkerId, std::shared_ptr<WorkerSession>> sessions_
      ABSL_GUARDED_BY(mutex_);
  // By when they must have registered.
  std::map<std::pair<int64_t, const WorkerSession*>,
           std::shared_ptr<WorkerSession>>
      unregistered_ ABSL_GUARDED_BY(mutex_);
  // Something was queued for them.
  std::set<std::shared_ptr<WorkerSession>> due_ ABSL_GUARDED_BY(mutex_);
  // Jobs whose start is to be stored.
  std::vector<AwaitStored> starts_ ABSL_GUARDED_BY(mutex_);
  std::vector<SendWhenStored> when_stored_ ABSL_GUARDED_BY(mutex_);
  int storing_ ABSL_GUARDED_BY(mutex_) = 0;  // of both, not yet answered
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread sender_;  // last: starts when all else is there
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SERVICE_WORKER_SESSIONS_H_
