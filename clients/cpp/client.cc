#include "clients/cpp/client.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "clients/cpp/call_context.h"
#include "clients/cpp/rpc_status.h"
#include "clients/cpp/rpc_stream.h"
#include "grpcpp/grpcpp.h"
#include "proto/base/status.h"
#include "proto/plan/set_fields.h"
#include "proto/scheduler.grpc.pb.h"
#include "proto/trust/grpc/credentials.h"
#include "proto/trust/grpc/why_not_connected.h"

namespace troupe {
namespace {

// A job may run for days; a stream this old is opened again from where it was.
constexpr absl::Duration kWatchMax = absl::Hours(1);
constexpr absl::Duration kGenerateMax = absl::Hours(1);
// A plan with programs is large.
constexpr int kMessageBytesMax = 256 << 20;

// So that a scheduler of another build sees what it does not know.
template <typename Request>
void NameFields(Request& request) {
  const std::vector<std::string> fields = SetFields(request.job());
  request.mutable_fields()->Assign(fields.begin(), fields.end());
}

}  // namespace

struct Client::Connection {
  std::string address;
  ClientOptions options;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<Scheduler::Stub> stub;

  template <typename Request, typename Response>
  using Method = grpc::Status (Scheduler::Stub::*)(grpc::ClientContext*,
                                                   const Request&, Response*);

  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(Method<Request, Response> method,
                                const Request& request,
                                absl::Duration deadline) {
    grpc::ClientContext context;
    PrepareCall(context, deadline);
    Response response;
    const grpc::Status status =
        (stub.get()->*method)(&context, request, &response);
    RETURN_IF_ERROR(RpcStatus(status, address));
    return response;
  }
};

Client::Client(std::unique_ptr<Connection> connection)
    : connection_(std::move(connection)) {}
Client::~Client() = default;

const std::string& Client::address() const { return connection_->address; }

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(
    const std::string& address, const ClientOptions& options) {
  auto connection = std::make_unique<Connection>();
  connection->address = address;
  connection->options = options;
  ASSIGN_OR_RETURN(
      const std::shared_ptr<grpc::ChannelCredentials> credentials,
      ChannelCredentials(options.trust, PeerRole::kClient, address));
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // A machine that went away says nothing, and a stream would wait for ever.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  connection->channel =
      grpc::CreateCustomChannel(address, credentials, arguments);
  if (!connection->channel->WaitForConnected(
          absl::ToChronoTime(absl::Now() + options.connect))) {
    return Unreachable(address, options.connect,
                       WhyNotConnected(connection->channel));
  }
  connection->stub = Scheduler::NewStub(connection->channel);
  return std::unique_ptr<Client>(new Client(std::move(connection)));
}

absl::StatusOr<SubmitJobResponse> Client::Submit(const JobSpec& job,
                                                 const KeepGoing& keep_going,
                                                 const std::string& made_by) {
  SubmitJobRequest request;
  *request.mutable_job() = job;
  request.set_made_by(made_by);
  NameFields(request);
  return ReadAnswer<SubmitJobResponse>(
      connection_->address, connection_->options.plan,
      [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
        return connection_->stub->PrepareAsyncSubmitJob(context, request,
                                                        queue);
      },
      keep_going);
}

absl::StatusOr<PlanJobResponse> Client::PlanJob(PlanJobRequest request) {
  NameFields(request);
  return connection_->Call(&Scheduler::Stub::PlanJob, request,
                           connection_->options.plan);
}

absl::StatusOr<Explanation> Client::ExplainJob(const JobSpec& job) {
  PlanJobRequest request;
  *request.mutable_job() = job;
  request.set_explain(true);
  NameFields(request);
  ASSIGN_OR_RETURN(PlanJobResponse response,
                   connection_->Call(&Scheduler::Stub::PlanJob, request,
                                     connection_->options.plan));
  return std::move(*response.mutable_explanation());
}

absl::StatusOr<ListJobsResponse> Client::ListJobs() {
  return connection_->Call(&Scheduler::Stub::ListJobs, ListJobsRequest(),
                           connection_->options.call);
}

absl::StatusOr<JobDescription> Client::Describe(int64_t id) {
  DescribeJobRequest request;
  request.set_id(id);
  return connection_->Call(&Scheduler::Stub::DescribeJob, request,
                           connection_->options.call);
}

absl::StatusOr<JobStatus> Client::Cancel(int64_t id, bool checkpoint) {
  CancelJobRequest request;
  request.set_id(id);
  request.set_checkpoint(checkpoint);
  ASSIGN_OR_RETURN(CancelJobResponse response,
                   connection_->Call(&Scheduler::Stub::CancelJob, request,
                                     connection_->options.call));
  return std::move(*response.mutable_status());
}

absl::StatusOr<ListWorkersResponse> Client::Workers() {
  return connection_->Call(&Scheduler::Stub::ListWorkers, ListWorkersRequest(),
                           connection_->options.call);
}

absl::StatusOr<GetTimelineResponse> Client::Timeline(
    const TimelineOptions& options) {
  GetTimelineRequest request;
  request.set_id(options.id);
  request.set_step(options.step);
  return connection_->Call(&Scheduler::Stub::GetTimeline, request,
                           connection_->options.call);
}

absl::Status Client::Watch(
    const WatchOptions& options,
    const std::function<void(const WatchJobResponse&)>& on_update,
    const KeepGoing& keep_going) {
  WatchJobRequest request;
  request.set_id(options.id);
  request.set_from_step(options.from_step);
  request.set_from_event(options.from_event);
  const auto on_message = [&](const WatchJobResponse& update) {
    if (update.steps_size() > 0) {
      request.set_from_step(update.steps(update.steps_size() - 1).step());
    }
    request.set_from_event(request.from_event() + update.events_size());
    on_update(update);
  };
  while (true) {
    const absl::Status status = ReadStream<WatchJobResponse>(
        connection_->address, kWatchMax,
        [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
          return connection_->stub->PrepareAsyncWatchJob(context, request,
                                                         queue);
        },
        on_message, keep_going);
    if (!absl::IsDeadlineExceeded(status)) return status;
  }
}

absl::Status Client::Generate(
    const GenerateRequest& request,
    const std::function<void(const GenerateResponse&)>& on_text,
    const KeepGoing& keep_going) {
  const absl::Status status = ReadStream<GenerateResponse>(
      connection_->address, kGenerateMax,
      [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
        return connection_->stub->PrepareAsyncGenerate(context, request, queue);
      },
      on_text, keep_going);
  if (!absl::IsDeadlineExceeded(status)) return status;
  return absl::DeadlineExceededError(absl::StrCat(
      "the text took longer than ", absl::FormatDuration(kGenerateMax),
      " and was ended; ask ", "for fewer tokens (max_new_tokens)"));
}

absl::StatusOr<WorkerStatus> Client::CordonWorker(
    const CordonWorkerRequest& request) {
  ASSIGN_OR_RETURN(CordonWorkerResponse response,
                   connection_->Call(&Scheduler::Stub::CordonWorker, request,
                                     connection_->options.call));
  return std::move(*response.mutable_worker());
}

absl::StatusOr<std::string> Client::CancelText(int64_t text) {
  CancelTextRequest request;
  request.set_text(text);
  ASSIGN_OR_RETURN(CancelTextResponse response,
                   connection_->Call(&Scheduler::Stub::CancelText, request,
                                     connection_->options.call));
  return std::move(*response.mutable_worker());
}

}  // namespace troupe
