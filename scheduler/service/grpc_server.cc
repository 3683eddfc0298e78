#include "scheduler/service/grpc_server.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/health_check_service_interface.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/trust/grpc/credentials.h"
#include "scheduler/service/file_check_calls.h"
#include "scheduler/service/job_watchers.h"
#include "scheduler/service/planning.h"
#include "scheduler/service/scheduler_service.h"
#include "scheduler/service/text_streams.h"
#include "scheduler/service/worker_sessions.h"

namespace troupe {

struct GrpcServer::Parts {
  Parts(ClusterHost& host, const JobCompiler& compiler,
        GrpcServerOptions options)
      : planning(host, compiler),
        sessions(host, compiler, options.flush,
                 {.register_max = options.register_max,
                  .takes_unnamed = options.unnamed_workers}),
        watchers(host),
        texts(host),
        file_checks(host),
        trust(std::move(options.trust)),
        service(host,
                {.planning = planning,
                 .watchers = watchers,
                 .texts = texts,
                 .file_checks = file_checks},
                std::move(options.flush), std::move(options.told)) {}

  Planning planning;
  WorkerSessions sessions;
  JobWatchers watchers;
  TextStreams texts;
  FileCheckCalls file_checks;
  const PeerTrust trust;
  SchedulerService service;
  std::string address;
  std::unique_ptr<grpc::Server> server;
};

GrpcServer::GrpcServer(ClusterHost& host, const JobCompiler& compiler,
                       GrpcServerOptions options)
    : parts_(std::make_unique<Parts>(host, compiler, std::move(options))) {}

GrpcServer::~GrpcServer() { Stop(); }

absl::Status GrpcServer::Start(const std::string& listen) {
  CHECK(parts_->server == nullptr);
  ASSIGN_OR_RETURN(
      const std::shared_ptr<grpc::ServerCredentials> credentials,
      ServerCredentials(parts_->trust,
                        {{"/troupe.Workers/", PeerRole::kWorker},
                         {"/troupe.Scheduler/", PeerRole::kClient}},
                        listen));
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  // Two schedulers on one port would each get some of the connections.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1'000);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             kHandshakeMsMax);
  builder.SetMaxReceiveMessageSize(kReceivedBytesMax);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsMax);
  builder.SetMaxSendMessageSize(kMessageBytesMax);
  int port = 0;
  builder.AddListeningPort(listen, credentials, &port);
  builder.RegisterService(&parts_->sessions);
  builder.RegisterService(&parts_->service);
  parts_->server = builder.BuildAndStart();
  if (parts_->server == nullptr || port == 0) {
    parts_->server = nullptr;
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on ", listen, " (--listen): another process has the ",
        "port, or the address is not this machine's; port 0 takes a free one"));
  }
  parts_->address =
      absl::StrCat(listen.substr(0, listen.rfind(':')), ":", port);
  return absl::OkStatus();
}

const std::string& GrpcServer::address() const {
  CHECK(parts_->server != nullptr);
  return parts_->address;
}

void GrpcServer::Stop() {
  parts_->sessions.Stopping();
  parts_->service.Stop();
  parts_->planning.Stop();  // whose clients wait for an answer
  parts_->file_checks.Stop();  // the same
  if (parts_->server != nullptr) {
    parts_->server->Shutdown(std::chrono::system_clock::now() +
                             std::chrono::milliseconds(200));
    parts_->server->Wait();
    parts_->server = nullptr;
  }
  parts_->sessions.Stop();  // all parts are there to carry what comes of it
}

void GrpcServer::Carry(const Actions& actions) {
  parts_->planning.Carry(actions);
  parts_->sessions.Carry(actions);
  parts_->texts.Carry(actions);
  parts_->file_checks.Carry(actions);
  parts_->watchers.Carry(actions);
}

}  // namespace troupe
