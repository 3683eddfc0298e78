// A cluster behind a real gRPC server on a port of the kernel's choice, with a
// compiler of the test's own, and a client.
#ifndef TROUPE_TESTS_SCHEDULER_SERVICE_SERVED_CLUSTER_H_
#define TROUPE_TESTS_SCHEDULER_SERVICE_SERVED_CLUSTER_H_

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "grpcpp/grpcpp.h"
#include "proto/base/clock.h"
#include "proto/scheduler.grpc.pb.h"
#include "scheduler/cluster/host.h"
#include "scheduler/service/grpc_server.h"
#include "tests/scheduler/cluster/fake_compiler.h"
#include "tests/scheduler/service/fake_worker.h"

namespace troupe {

class ServedCluster final : public ActionSink {
 public:
  explicit ServedCluster(const Limits& limits = {},
                         const PeerTrust& trust = {.insecure = 1},
                         absl::Duration register_max = absl::Seconds(10),
                         bool unnamed_workers = false)
      : cluster(limits, compiler),
        host(cluster, clock, *this),
        server(
            host, compiler,
            {.flush =
                 [this](std::function<void(const absl::Status&)> f) {
                   f(durable);
                 },
             .told = [this](absl::string_view, const absl::Status&) { ++rpcs; },
             .trust = trust,
             .register_max = register_max,
             .unnamed_workers = unnamed_workers}) {
    CHECK_OK(server.Start("127.0.0.1:0"));
    channel = grpc::CreateChannel(server.address(),
                                  grpc::InsecureChannelCredentials());
    stub = Scheduler::NewStub(channel);
  }

  void Carry(const Actions& actions) override { server.Carry(actions); }

  std::unique_ptr<FakeWorker> Join(const std::string& name) {
    auto worker = std::make_unique<FakeWorker>(channel, name);
    CHECK(worker->Read()->has_registered());
    return worker;
  }
  int64_t Submit(const JobSpec& spec) {
    SubmitJobRequest request;
    *request.mutable_job() = spec;
    SubmitJobResponse response;
    const grpc::Status status =
        stub->SubmitJob(Call().get(), request, &response);
    CHECK(status.ok()) << status.error_message();
    return response.id();
  }
  grpc::Status Cancel(int64_t job) {
    CancelJobRequest request;
    request.set_id(job);
    CancelJobResponse response;
    return stub->CancelJob(Call().get(), request, &response);
  }
  // Watches until the job is in this state.
  JobStatus Await(int64_t job, JobState state) {
    const auto context = Call();
    WatchJobRequest request;
    request.set_id(job);
    const auto watch = stub->WatchJob(context.get(), request);
    WatchJobResponse news;
    do {
      CHECK(watch->Read(&news)) << watch->Finish().error_message();
    } while (news.status().state() != state);
    context->TryCancel();
    return news.status();
  }
  // Returns once `look(cluster)` is true.
  template <typename Look>
  void AwaitThat(Look look) {
    while (!host.Read([&](const Cluster& c, absl::Time) { return look(c); })) {
      std::this_thread::yield();
    }
  }

  FakeCompiler compiler;
  RealClock clock;
  absl::Status durable;  // what flushes answer
  std::atomic<int> rpcs = 0;
  Cluster cluster;
  ClusterHost host;
  GrpcServer server;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<Scheduler::Stub> stub;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_SCHEDULER_SERVICE_SERVED_CLUSTER_H_
