// The worker's end of a session, driven by a test.
#ifndef TROUPE_TESTS_SCHEDULER_SERVICE_FAKE_WORKER_H_
#define TROUPE_TESTS_SCHEDULER_SERVICE_FAKE_WORKER_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "grpcpp/grpcpp.h"
#include "proto/worker.grpc.pb.h"
#include "tests/scheduler/cluster/fake_compiler.h"

namespace troupe {

// Calls have a minute: a test that waits for nothing fails.
inline std::unique_ptr<grpc::ClientContext> Call() {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() +
                        std::chrono::minutes(1));
  return context;
}

class FakeWorker {
 public:
  FakeWorker(const std::shared_ptr<grpc::Channel>& channel,
             const std::string& name)
      : stub_(Workers::NewStub(channel)),
        context_(Call()),
        stream_(stub_->Session(context_.get())) {
    WorkerMessage hello;
    *hello.mutable_register_() = RegisterOf(name);
    stream_->Write(hello);
  }
  ~FakeWorker() {
    context_->TryCancel();
    if (!finished_) Finish();
  }

  // The next message but what is stored; nullopt: the stream is over.
  std::optional<SchedulerMessage> Read() {
    SchedulerMessage message;
    do {
      if (!stream_->Read(&message)) return std::nullopt;
    } while (message.has_stored());
    return message;
  }
  // The next of those that Read passes over. REQUIRES: nothing else is sent.
  Stored ReadStored() {
    SchedulerMessage message;
    return stream_->Read(&message) ? message.stored() : Stored();
  }
  bool Write(const WorkerMessage& message) { return stream_->Write(message); }
  grpc::Status Finish() {
    finished_ = true;
    return stream_->Finish();
  }

  // REQUIRES: the next message is an assignment. Reports that the rank is
  // ready.
  Assignment TakeRank() {
    const Assignment start = Read()->start();
    WorkerMessage ready;
    *ready.mutable_rank_ready()->mutable_ref() = start.ref();
    ready.mutable_rank_ready()->set_first_step(1);
    Write(ready);
    return start;
  }
  // REQUIRES: the next message asks for a checkpoint's job. Gives one for which
  // this worker has memory enough, and returns what it is to write.
  GenerateText TakeText() {
    WorkerMessage job;
    job.mutable_checkpoint_job()->set_request(Read()->read_job().request());
    Write(job);
    return Read()->generate();
  }
  void Step(const Assignment& of, int64_t step) {
    WorkerMessage message;
    *message.mutable_step()->mutable_ref() = of.ref();
    message.mutable_step()->mutable_record()->set_step(step);
    message.mutable_step()->mutable_record()->set_loss(1.0 / step);
    Write(message);
  }
  void End(const Assignment& of, bool ok, int64_t step) {
    WorkerMessage message;
    *message.mutable_ended()->mutable_ref() = of.ref();
    message.mutable_ended()->set_ok(ok);
    message.mutable_ended()->set_step(step);
    Write(message);
  }

 private:
  std::unique_ptr<Workers::Stub> stub_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientReaderWriter<WorkerMessage, SchedulerMessage>>
      stream_;
  bool finished_ = false;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_SCHEDULER_SERVICE_FAKE_WORKER_H_
