// The Workers service: one stream for each worker, and the table through which
// the cluster's messages find it. What a worker says becomes an event; the end
// of its stream is the event Disconnected.
//
// Locks: the host's comes first, then the table's, then a stream's.
#ifndef TROUPE_SCHEDULER_SERVICE_WORKER_SESSIONS_H_
#define TROUPE_SCHEDULER_SERVICE_WORKER_SESSIONS_H_

#include <atomic>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/grpcpp.h"
#include "proto/worker.grpc.pb.h"
#include "scheduler/cluster/host.h"

namespace troupe {

class WorkerSession;

class WorkerSessions final : public Workers::CallbackService,
                             public ActionSink {
 public:
  // Borrows the host.
  explicit WorkerSessions(ClusterHost& host) : host_(host) {}

  grpc::ServerBidiReactor<WorkerMessage, SchedulerMessage>* Session(
      grpc::CallbackServerContext* context) override;

  // SendToWorker and DropWorker; the other actions are not its business.
  void Carry(const Actions& actions) override;

  // From here on streams that end are the server's doing: no events.
  void Stopping() { stopping_ = true; }

  // Messages that may wait for one worker.
  static constexpr size_t kQueueMax = 1 << 16;

 private:
  friend class WorkerSession;
  void Attach(WorkerId id, WorkerSession* session);
  // The session is about to go away.
  void Detach(WorkerId id, WorkerSession* session);

  ClusterHost& host_;
  std::atomic<bool> stopping_ = false;
  absl::Mutex mutex_;
  std::map<WorkerId, WorkerSession*> sessions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SERVICE_WORKER_SESSIONS_H_
