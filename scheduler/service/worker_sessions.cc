#include "scheduler/service/worker_sessions.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "scheduler/service/grpc_status.h"
#include "scheduler/service/queued_stream.h"

namespace troupe {

class WorkerSession final
    : public QueuedStream<
          grpc::ServerBidiReactor<WorkerMessage, SchedulerMessage>,
          SchedulerMessage> {
 public:
  WorkerSession(WorkerSessions& table, grpc::CallbackServerContext* context)
      : QueuedStream(context, WorkerSessions::kQueueMax),
        table_(table),
        peer_(context->peer()) {
    StartRead(&incoming_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      Disconnected();
      return Close(grpc::Status::OK);
    }
    if (closing()) return;
    if (id_ == WorkerId()) {
      RegisterFrom(incoming_);
    } else {
      table_.host_.Apply([&](Cluster& cluster, absl::Time now, Actions& out) {
        cluster.HandleMessage(id_, incoming_, now, out);
      });
    }
    if (!closing()) StartRead(&incoming_);
  }

  void OnDone() override {
    Disconnected();
    table_.Detach(id_, this);
    delete this;
  }

 private:
  void RegisterFrom(const WorkerMessage& message) {
    if (!message.has_register_()) {
      return Close(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                                "the first message must be a Register"));
    }
    const absl::Status status =
        table_.host_
            .Apply([&](Cluster& cluster, absl::Time now, Actions& out) {
              auto id = cluster.RegisterWorker(message.register_(), now, out);
              if (id.ok()) {
                id_ = *id;
                table_.Attach(id_, this);  // before the actions are carried
              }
              return id;
            })
            .status();
    const std::string& name = message.register_().worker().name();
    if (status.ok()) {
      LogInfo(absl::StrCat(name, " registered from ", peer_));
    } else {
      LogWarning(absl::StrCat("refused ", name, " from ", peer_, ": ",
                              status.message()));
      Close(ToGrpc(status));
    }
  }

  void Disconnected() {
    if (id_ == WorkerId() || table_.stopping_) return;
    table_.host_.Apply([&](Cluster& cluster, absl::Time now, Actions& out) {
      cluster.Disconnected(id_, "connection closed", now, out);
    });
  }

  WorkerSessions& table_;
  const std::string peer_;
  WorkerId id_;  // set by the first message; reads are one after another
  WorkerMessage incoming_;
};

grpc::ServerBidiReactor<WorkerMessage, SchedulerMessage>*
WorkerSessions::Session(grpc::CallbackServerContext* context) {
  return new WorkerSession(*this, context);
}

void WorkerSessions::Attach(WorkerId id, WorkerSession* session) {
  absl::MutexLock lock(&mutex_);
  sessions_[id] = session;
}

void WorkerSessions::Detach(WorkerId id, WorkerSession* session) {
  absl::MutexLock lock(&mutex_);
  const auto it = sessions_.find(id);
  if (it != sessions_.end() && it->second == session) sessions_.erase(it);
}

void WorkerSessions::Carry(const Actions& actions) {
  absl::MutexLock lock(&mutex_);
  for (const Action& action : actions) {
    if (const auto* send = std::get_if<SendToWorker>(&action)) {
      const auto it = sessions_.find(send->worker);
      if (it != sessions_.end()) it->second->Push(send->message);
    } else if (const auto* drop = std::get_if<DropWorker>(&action)) {
      const auto it = sessions_.find(drop->worker);
      LogInfo(absl::StrCat("worker ", drop->worker.value(),
                           " is gone: ", drop->reason));
      if (it == sessions_.end()) continue;
      it->second->Abort(grpc::Status(grpc::StatusCode::ABORTED, drop->reason));
    }
  }
}

}  // namespace troupe
