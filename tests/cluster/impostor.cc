#include "tests/cluster/impostor.h"

#include <chrono>
#include <limits>

#include "grpcpp/grpcpp.h"
#include "proto/trust/grpc/credentials.h"
#include "proto/worker.grpc.pb.h"

namespace troupe {

struct Impostor::Session {
  std::unique_ptr<Workers::Stub> stub;
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReaderWriter<WorkerMessage, SchedulerMessage>>
      stream;
  bool finished = false;
};

Impostor::Impostor(const std::string& scheduler, int protocol_version,
                   const PeerTrust& trust)
    : session_(std::make_unique<Session>()) {
  session_->stub = Workers::NewStub(grpc::CreateChannel(
      scheduler,
      ChannelCredentials(trust, PeerRole::kWorker, scheduler).value()));
  session_->context.set_deadline(std::chrono::system_clock::now() +
                                 std::chrono::minutes(1));
  session_->stream = session_->stub->Session(&session_->context);
  WorkerMessage hello;
  Register& registration = *hello.mutable_register_();
  registration.set_protocol_version(protocol_version);
  registration.set_address("127.0.0.1");
  WorkerDescription& worker = *registration.mutable_worker();
  worker.set_name("worker-impostor");
  worker.set_device("cpu");
  worker.set_threads(1);
  worker.set_host_cores(1);
  TierBudget& budget = *worker.add_budgets();
  budget.set_tier(DEVICE);
  budget.set_bytes(int64_t{1} << 30);
  session_->stream->Write(hello);
}

Impostor::~Impostor() {
  if (!session_->finished) Vanish();
}

absl::Status Impostor::AwaitRegistration() {
  SchedulerMessage message;
  if (session_->stream->Read(&message)) return absl::OkStatus();
  session_->finished = true;
  const grpc::Status status = session_->stream->Finish();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      status.error_message());
}

int64_t Impostor::AwaitJob() {
  SchedulerMessage message;
  while (session_->stream->Read(&message)) {
    if (message.has_start()) return message.start().ref().job();
  }
  return 0;
}

void Impostor::TalkNonsense() {
  WorkerMessage report;
  report.mutable_step()->mutable_ref()->set_job(-7);
  report.mutable_step()->mutable_ref()->set_rank(1 << 30);
  report.mutable_step()->mutable_record()->set_step(
      std::numeric_limits<int64_t>::min());
  session_->stream->Write(report);
  WorkerMessage question;
  question.mutable_store_get()->mutable_ref()->set_job(12345);
  session_->stream->Write(question);
  session_->stream->Write(WorkerMessage());
  WorkerMessage hello;
  hello.mutable_register_()->mutable_worker()->set_name("worker-impostor");
  session_->stream->Write(hello);
}

void Impostor::Vanish() {
  session_->context.TryCancel();
  session_->stream->Finish();
  session_->finished = true;
}

struct NewerScheduler::Server final : public Workers::Service {
  grpc::Status Session(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<SchedulerMessage, WorkerMessage>* stream)
      override {
    WorkerMessage hello;
    stream->Read(&hello);
    return grpc::Status(
        grpc::StatusCode::FAILED_PRECONDITION,
        "the worker speaks protocol version " +
            std::to_string(hello.register_().protocol_version()) +
            " and this scheduler version 99; run both from one build");
  }

  std::string address;
  std::unique_ptr<grpc::Server> server;
};

NewerScheduler::NewerScheduler() : server_(std::make_unique<Server>()) {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(server_.get());
  server_->server = builder.BuildAndStart();
  server_->address = "127.0.0.1:" + std::to_string(port);
}

NewerScheduler::~NewerScheduler() { server_->server->Shutdown(); }

const std::string& NewerScheduler::address() const { return server_->address; }

}  // namespace troupe
