#include "scheduler/service/worker_sessions.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "proto/base/one_line.h"
#include "proto/trust/grpc/peer_identity.h"
#include "proto/trust/refused_peers.h"
#include "proto/trust/worker_names.h"
#include "scheduler/cluster/hand_out.h"
#include "scheduler/service/grpc_status.h"
#include "scheduler/service/message_limits.h"
#include "scheduler/service/queued_stream.h"

namespace troupe {

class WorkerSession final
    : public QueuedStream<
          grpc::ServerBidiReactor<WorkerMessage, SchedulerMessage>,
          SchedulerMessage, SendToWorker> {
 public:
  WorkerSession(WorkerSessions& table, grpc::CallbackServerContext* context,
                int64_t registers_by_ns)
      : QueuedStream(context, WorkerSessions::kQueueMax),
        table_(table),
        peer_(context->peer()),
        identity_(IdentityOf(*context->auth_context())),
        registers_by_ns_(registers_by_ns) {}

  int64_t registers_by_ns() const { return registers_by_ns_; }

  void OnReadDone(bool ok) override {
    if (!ok) {
      Disconnected();
      return Close(grpc::Status::OK);
    }
    if (closing()) return;
    const absl::Status size = CheckWorkerMessageSize(incoming_);
    if (!size.ok()) {
      LogWarning(
          absl::StrCat("ending the session of ", peer_, ": ", size.message()));
      Close(ToGrpc(size));
    } else if (id_ == WorkerId()) {
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
    // It may be sending just now; the last holder deletes it.
    const std::shared_ptr<WorkerSession> self = std::move(self_);
  }

  // Until OnDone it keeps itself alive.
  void Begin(std::shared_ptr<WorkerSession> self) {
    self_ = std::move(self);
    StartRead(&incoming_);
  }

 protected:
  SchedulerMessage Outgoing(SendToWorker send) const override {
    return Completed(send, table_.compiler_);
  }

 private:
  absl::Status CheckMayHaveTheName(const std::string& name) const {
    const bool takes_any =
        table_.takes_unnamed_ && identity_.worker_names.empty();
    if (!identity_.has_certificate || takes_any) return absl::OkStatus();
    return CheckMayBeNamed(name, identity_.worker_names);
  }

  void RegisterFrom(const WorkerMessage& message) {
    if (!message.has_register_()) {
      return Close(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                                "the first message must be a Register"));
    }
    const std::string& name = message.register_().worker().name();
    absl::Status status = CheckMayHaveTheName(name);
    if (status.ok()) status = Register(message.register_());
    if (status.ok()) {
      LogInfo(absl::StrCat(name, " registered from ", peer_));
      if (identity_.has_certificate && identity_.worker_names.empty()) {
        LogWarning(absl::StrCat("the certificate of ", name, " (",
                                identity_.name,
                                ") says no worker's name and is taken for any ",
                                "(--unnamed-workers); make one that does with ",
                                "troupe cluster certificate"));
      }
    } else {
      TellOfRefusedPeer(Door::kWorkers,
                        absl::StrCat("the worker ", OneLine(name, 100),
                                     " from ", peer_, ": ", status.message()));
      Close(ToGrpc(status));
    }
  }

  absl::Status Register(const troupe::Register& registration) {
    return table_.host_
        .Apply([&](Cluster& cluster, absl::Time now, Actions& out) {
          auto id = cluster.RegisterWorker(registration, now, out);
          if (id.ok()) {
            id_ = *id;
            table_.Attach(id_, self_);  // before the actions are carried
          }
          return id;
        })
        .status();
  }

  void Disconnected() {
    if (id_ == WorkerId() || table_.stopping_) return;
    table_.host_.Apply([&](Cluster& cluster, absl::Time now, Actions& out) {
      cluster.Disconnected(id_, "connection closed", now, out);
    });
  }

  WorkerSessions& table_;
  const std::string peer_;
  const PeerIdentity identity_;
  const int64_t registers_by_ns_;
  WorkerId id_;  // set by the first message; reads are one after another
  WorkerMessage incoming_;
  std::shared_ptr<WorkerSession> self_;
};

WorkerSessions::WorkerSessions(ClusterHost& host, const JobCompiler& compiler,
                               FlushFunction flush, const Options& options)
    : host_(host),
      compiler_(compiler),
      flush_(std::move(flush)),
      register_max_(options.register_max),
      takes_unnamed_(options.takes_unnamed),
      sender_([this] { SendLoop(); }) {}

void WorkerSessions::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    ended_ = true;
  }
  if (sender_.joinable()) sender_.join();
  const auto answered = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return storing_ == 0;
  };
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&answered));
}

grpc::ServerBidiReactor<WorkerMessage, SchedulerMessage>*
WorkerSessions::Session(grpc::CallbackServerContext* context) {
  const int64_t by_ns =
      clock_.MonotonicNanos() + absl::ToInt64Nanoseconds(register_max_);
  auto session = std::make_shared<WorkerSession>(*this, context, by_ns);
  bool is_one_too_many = false;
  {
    absl::MutexLock lock(&mutex_);
    is_one_too_many = unregistered_.size() >= kUnregisteredMax;
    if (!is_one_too_many) {
      unregistered_.emplace(std::pair(by_ns, session.get()), session);
    }
  }
  session->Begin(session);
  if (is_one_too_many) {
    session->Close(grpc::Status(
        grpc::StatusCode::UNAVAILABLE,
        absl::StrCat(kUnregisteredMax, " workers are about to register; try ",
                     "again")));
  }
  return session.get();
}

void WorkerSessions::Attach(WorkerId id,
                            std::shared_ptr<WorkerSession> session) {
  absl::MutexLock lock(&mutex_);
  unregistered_.erase({session->registers_by_ns(), session.get()});
  sessions_[id] = std::move(session);
}

void WorkerSessions::Detach(WorkerId id, const WorkerSession* session) {
  absl::MutexLock lock(&mutex_);
  unregistered_.erase({session->registers_by_ns(), session});
  const auto it = sessions_.find(id);
  if (it != sessions_.end() && it->second.get() == session) sessions_.erase(it);
}

void WorkerSessions::SendLoop() {
  while (true) {
    std::set<std::shared_ptr<WorkerSession>> due;
    std::vector<AwaitStored> starts;
    std::vector<SendWhenStored> sends;
    {
      absl::MutexLock lock(&mutex_);
      const auto is_due = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
        return ended_ || !due_.empty() || !starts_.empty() ||
               !when_stored_.empty();
      };
      mutex_.AwaitWithTimeout(
          absl::Condition(&is_due),
          unregistered_.empty()
              ? register_max_
              : absl::Nanoseconds(unregistered_.begin()->first.first -
                                  clock_.MonotonicNanos()));
      if (ended_) return;
      EndUnregistered();
      due.swap(due_);
      starts.swap(starts_);
      sends.swap(when_stored_);
      storing_ += static_cast<int>(starts.size()) + (sends.empty() ? 0 : 1);
    }
    if (!sends.empty()) Store(std::move(sends));
    for (const AwaitStored& start : starts) Store(start);
    for (const std::shared_ptr<WorkerSession>& session : due) session->Pump();
  }
}

void WorkerSessions::EndUnregistered() {
  const int64_t now_ns = clock_.MonotonicNanos();
  while (!unregistered_.empty() &&
         unregistered_.begin()->first.first <= now_ns) {
    unregistered_.begin()->second->Abort(
        grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED,
                     absl::StrCat("no Register within ",
                                  absl::FormatDuration(register_max_))));
    unregistered_.erase(unregistered_.begin());
  }
}

void WorkerSessions::Store(const AwaitStored& start) {
  flush_([this, start](const absl::Status& stored) {
    host_.Apply([&](Cluster& cluster, absl::Time now, Actions& out) {
      cluster.Stored(start, stored, now, out);
    });
    absl::MutexLock lock(&mutex_);
    --storing_;
  });
}

void WorkerSessions::Store(std::vector<SendWhenStored> sends) {
  flush_([this, sends = std::move(sends)](const absl::Status& stored) {
    absl::MutexLock lock(&mutex_);
    for (const SendWhenStored& each : sends) {
      if (!stored.ok() && !each.otherwise.has_value()) continue;
      const auto it = sessions_.find(each.send.worker);
      if (it == sessions_.end()) continue;
      SendToWorker send = each.send;
      if (!stored.ok()) send.message = *each.otherwise;
      it->second->Enqueue(std::move(send));
      due_.insert(it->second);
    }
    --storing_;
  });
}

void WorkerSessions::Carry(const Actions& actions) {
  absl::MutexLock lock(&mutex_);
  for (const Action& action : actions) {
    if (const auto* send = std::get_if<SendToWorker>(&action)) {
      const auto it = sessions_.find(send->worker);
      if (it == sessions_.end()) continue;
      it->second->Enqueue(*send);
      due_.insert(it->second);
    } else if (const auto* stored = std::get_if<SendWhenStored>(&action)) {
      when_stored_.push_back(*stored);
    } else if (const auto* drop = std::get_if<DropWorker>(&action)) {
      const auto it = sessions_.find(drop->worker);
      LogInfo(absl::StrCat("worker ", drop->worker.value(),
                           " is gone: ", drop->reason));
      if (it == sessions_.end()) continue;
      it->second->Abort(grpc::Status(grpc::StatusCode::ABORTED, drop->reason));
    } else if (const auto* start = std::get_if<AwaitStored>(&action)) {
      starts_.push_back(*start);
    }
  }
}

}  // namespace troupe
