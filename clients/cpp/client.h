// The typed client: one method for each RPC of proto/scheduler.proto, messages
// in and out, gRPC out of sight.
//
//   ASSIGN_OR_RETURN(auto client,
//                    Client::Connect("127.0.0.1:4321", {.trust = trust}));
//   ASSIGN_OR_RETURN(SubmitJobResponse job, client->Submit(spec));
//   RETURN_IF_ERROR(client->Watch({.id = job.id()}, on_update, keep_going));
//
// Every call carries a deadline. Errors keep the scheduler's code and message;
// where nobody answers, the message says which address was tried and what to
// do.
#ifndef TROUPE_CLIENTS_CPP_CLIENT_H_
#define TROUPE_CLIENTS_CPP_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/plan/plan_limits.h"
#include "proto/scheduler.pb.h"
#include "proto/trust/peer_trust.h"

namespace troupe {

struct ClientOptions {
  PeerTrust trust;  // how client and scheduler know each other
  absl::Duration connect = absl::Seconds(5);
  absl::Duration call = absl::Seconds(20);
  // Planning compiles the whole job, and may wait for its turn.
  absl::Duration plan = kPlanMax + absl::Minutes(1);
};

struct WatchOptions {
  int64_t id = 0;
  int64_t from_step = 0;   // steps after this one
  int64_t from_event = 0;  // events after this many
};

// Not thread-safe.
class Client {
 public:
  // Unavailable where nothing answers within options.connect, or what answers
  // is not believed; else the errors of CheckTrust.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(
      const std::string& address, const ClientOptions& options);
  ~Client();

  const std::string& address() const;

  // Asked ten times a second while a call is under way; false ends the call
  // with Cancelled, which harms neither job nor scheduler.
  using KeepGoing = std::function<bool()>;

  // Takes as long as planning does. One that `keep_going` ends may have been
  // accepted nevertheless. `made_by`: of a job that a command makes for its own
  // use, which `latest` does not mean, the command.
  absl::StatusOr<SubmitJobResponse> Submit(
      const JobSpec& job, const KeepGoing& keep_going = [] { return true; },
      const std::string& made_by = "");
  absl::StatusOr<PlanJobResponse> PlanJob(PlanJobRequest request);
  absl::StatusOr<Explanation> ExplainJob(const JobSpec& job);
  absl::StatusOr<ListJobsResponse> ListJobs();
  absl::StatusOr<JobDescription> Describe(int64_t id);
  // With `checkpoint`: after the step in progress, which is saved.
  absl::StatusOr<JobStatus> Cancel(int64_t id, bool checkpoint = false);
  absl::StatusOr<ListWorkersResponse> Workers();
  // The worker, as it is then.
  absl::StatusOr<WorkerStatus> CordonWorker(const CordonWorkerRequest& request);
  struct TimelineOptions {
    int64_t id = 0;
    int64_t step = 0;  // 0: the last traced one
  };
  absl::StatusOr<GetTimelineResponse> Timeline(const TimelineOptions& options);

  // Hands each piece of news to `on_update`; OK once the job has ended.
  absl::Status Watch(
      const WatchOptions& options,
      const std::function<void(const WatchJobResponse&)>& on_update,
      const KeepGoing& keep_going);

  // Hands each piece of text to `on_text` as the model writes it. A text that
  // takes longer than an hour is ended: DeadlineExceeded.
  absl::Status Generate(
      const GenerateRequest& request,
      const std::function<void(const GenerateResponse&)>& on_text,
      const KeepGoing& keep_going);
  // Ends a text for the client that waits for it; the name of the worker.
  absl::StatusOr<std::string> CancelText(int64_t text);

 private:
  struct Connection;  // channel and stub
  explicit Client(std::unique_ptr<Connection> connection);

  std::unique_ptr<Connection> connection_;
};

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CPP_CLIENT_H_
