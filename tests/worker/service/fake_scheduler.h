// A scheduler of a few lines, on a real port: answers registrations, runs the
// rendezvous, asks rank 0 to commit once every rank's shard is there, and keeps
// all that it hears.
//
//   FakeScheduler scheduler;
//   ... a session with scheduler.address() ...
//   scheduler.AwaitMessages(1, [](const WorkerMessage& m) {
//     return m.has_rank_ready(); });
#ifndef TROUPE_TESTS_WORKER_SERVICE_FAKE_SCHEDULER_H_
#define TROUPE_TESTS_WORKER_SERVICE_FAKE_SCHEDULER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/server.h"
#include "proto/worker.grpc.pb.h"

namespace troupe {

class FakeScheduler final : public Workers::Service {
 public:
  struct Options {
    std::string address = "127.0.0.1:0";
    double heartbeat_seconds = 0.02;
    absl::Status refusal;  // not OK: of every registration
    bool answers = true;   // false: says nothing
    std::string cluster_id = "";
  };
  FakeScheduler() : FakeScheduler(Options()) {}
  explicit FakeScheduler(const Options& options);
  ~FakeScheduler() override;

  const std::string& address() const { return address_; }
  int port() const { return port_; }

  // To the worker that registered under this name.
  void Send(const std::string& worker, const SchedulerMessage& message);
  // From here on nothing more is read, as by a process that is stopped, until
  // it goes on.
  void Pause(bool paused);
  // Ends all sessions, as a scheduler that stops does.
  void EndSessions();

  // Waits until that many messages of all workers satisfy the predicate, and
  // returns them.
  std::vector<WorkerMessage> AwaitMessages(
      size_t count, std::function<bool(const WorkerMessage&)> wanted);
  // How many satisfy it now.
  size_t Count(const std::function<bool(const WorkerMessage&)>& wanted);

 private:
  using Stream = grpc::ServerReaderWriter<SchedulerMessage, WorkerMessage>;

  grpc::Status Session(grpc::ServerContext* context, Stream* stream) override;
  void React(Stream& stream, const WorkerMessage& message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  std::string address_;
  int port_ = 0;
  absl::Mutex mutex_;
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, Stream*> streams_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, grpc::ServerContext*> contexts_ ABSL_GUARDED_BY(mutex_);
  std::vector<WorkerMessage> heard_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> store_ ABSL_GUARDED_BY(mutex_);
  // The ranks that wait for a key.
  std::multimap<std::string, std::pair<Stream*, RankRef>> waiting_
      ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_SERVICE_FAKE_SCHEDULER_H_
