// The Scheduler service: RPCs become events of the cluster, and looks at it.
// Nothing is decided here, but whose turn it is (turnstile.h) and how large a
// request may be (message_limits.h).
#ifndef TROUPE_SCHEDULER_SERVICE_SCHEDULER_SERVICE_H_
#define TROUPE_SCHEDULER_SERVICE_SCHEDULER_SERVICE_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/grpcpp.h"
#include "proto/scheduler.grpc.pb.h"
#include "scheduler/cluster/host.h"
#include "scheduler/service/arena_messages.h"
#include "scheduler/service/file_check_calls.h"
#include "scheduler/service/job_watchers.h"
#include "scheduler/service/planning.h"
#include "scheduler/service/text_streams.h"
#include "scheduler/service/turnstile.h"
#include "scheduler/service/unread_answers.h"

namespace troupe {

// Calls its argument once all that was handed to the sinks is durable, or with
// the reason why it is not.
using FlushFunction =
    std::function<void(std::function<void(const absl::Status&)>)>;

// Told of each answered RPC.
using RpcFunction =
    std::function<void(absl::string_view rpc, const absl::Status& status)>;

class SchedulerService final : public Scheduler::CallbackService {
 public:
  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

  // What carries out the calls that take their time.
  struct Parts {
    Planning& planning;
    JobWatchers& watchers;
    TextStreams& texts;
    FileCheckCalls& file_checks;
  };

  // Borrows the host and the parts.
  SchedulerService(ClusterHost& host, const Parts& parts, FlushFunction flush,
                   RpcFunction told);

  // Requests that wait for their turn are answered; none is served any more.
  void Stop() { turnstile_.Stop(); }

  Reactor* SubmitJob(Context* context, const SubmitJobRequest* request,
                     SubmitJobResponse* response) override;
  Reactor* PlanJob(Context* context, const PlanJobRequest* request,
                   PlanJobResponse* response) override;
  Reactor* ListJobs(Context* context, const ListJobsRequest* request,
                    ListJobsResponse* response) override;
  Reactor* DescribeJob(Context* context, const DescribeJobRequest* request,
                       JobDescription* response) override;
  grpc::ServerWriteReactor<WatchJobResponse>* WatchJob(
      Context* context, const WatchJobRequest* request) override;
  Reactor* CancelJob(Context* context, const CancelJobRequest* request,
                     CancelJobResponse* response) override;
  Reactor* GetTimeline(Context* context, const GetTimelineRequest* request,
                       GetTimelineResponse* response) override;
  Reactor* ListWorkers(Context* context, const ListWorkersRequest* request,
                       ListWorkersResponse* response) override;
  Reactor* CordonWorker(Context* context, const CordonWorkerRequest* request,
                        CordonWorkerResponse* response) override;
  grpc::ServerWriteReactor<GenerateResponse>* Generate(
      Context* context, const GenerateRequest* request) override;
  Reactor* CancelText(Context* context, const CancelTextRequest* request,
                      CancelTextResponse* response) override;

 private:
  // Has `serve` answer the call, when it is the client's turn; refuses it where
  // the request is larger than its kind may be.
  Reactor* InTurn(Context* context, absl::string_view rpc,
                  const google::protobuf::Message& request,
                  std::function<void(Reactor*)> serve);
  // The same of a stream, which is refused where others would wait.
  absl::Status MayStream(Context* context, absl::string_view rpc,
                         const google::protobuf::Message& request);

  // The same of one whose answer may be large: refused too where the client has
  // left too much unread.
  Reactor* InTurnOfLarge(Context* context, absl::string_view rpc,
                         const google::protobuf::Message& request,
                         std::function<void(Reactor*)> serve);

  // Ends the call with the status, and tells of it.
  Reactor* Answer(Reactor* reactor, absl::string_view rpc,
                  const absl::Status& status) const;
  // The same with a large answer, which counts until it is read.
  template <typename Request, typename Response>
  void AnswerLarge(const ArenaMessages<Request, Response>& messages,
                   Context* context, Reactor* reactor, absl::string_view rpc,
                   const Response& response, const absl::Status& status);

  // SubmitJob and PlanJob, in their turn.
  void Consider(Context* context, Reactor* reactor,
                const SubmitJobRequest* request, SubmitJobResponse* response);
  void Consider(Context* context, Reactor* reactor,
                const PlanJobRequest* request, PlanJobResponse* response);
  // SubmitJob, once it is known that the job fits: whether its files do.
  void CheckFiles(Context* context, Reactor* reactor,
                  const SubmitJobRequest* request,
                  const absl::StatusOr<CompileOutcome>& considered,
                  SubmitJobResponse* response);
  // The last part of SubmitJob, with what came of the first.
  void Submit(Context* context, Reactor* reactor,
              const SubmitJobRequest* request, const CompileOutcome& considered,
              SubmitJobResponse* response);

  ClusterHost& host_;
  Planning& planning_;
  JobWatchers& watchers_;
  TextStreams& texts_;
  FileCheckCalls& file_checks_;
  const FlushFunction flush_;
  const RpcFunction told_;
  UnreadAnswers unread_;
  // Those whose replies are large.
  ArenaMessages<ListJobsRequest, ListJobsResponse> list_jobs_;
  ArenaMessages<DescribeJobRequest, JobDescription> describe_job_;
  ArenaMessages<GetTimelineRequest, GetTimelineResponse> get_timeline_;
  ArenaMessages<ListWorkersRequest, ListWorkersResponse> list_workers_;
  ArenaMessages<PlanJobRequest, PlanJobResponse> plan_job_;
  Turnstile turnstile_;  // last: what waits in it uses all of the above
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SERVICE_SCHEDULER_SERVICE_H_
