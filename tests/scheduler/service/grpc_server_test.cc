#include "scheduler/service/grpc_server.h"

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "tests/scheduler/service/served_cluster.h"

namespace troupe {
namespace {

TEST(GrpcServer, RefusesATakenPort) {
  ServedCluster served;
  GrpcServer other(served.host, served.compiler,
                   {.flush = [](auto) {},
                    .told = [](auto, const auto&) {},
                    .trust = {.insecure = 1}});
  const absl::Status status = other.Start(served.server.address());
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_TRUE(
      absl::StrContains(status.message(), "another process has the port"))
      << status;
}

// The health service has no library to call it with; its messages are of one
// field each, so their bytes are known: status SERVING is field 1, value 1.
TEST(GrpcServer, AnswersTheHealthCheck) {
  ServedCluster served;
  const auto context = Call();
  grpc::Slice empty;
  const grpc::ByteBuffer request(&empty, 1);
  grpc::ByteBuffer response;
  grpc::Status status;
  absl::Notification done;
  grpc::GenericStub(served.channel)
      .UnaryCall(context.get(), "/grpc.health.v1.Health/Check", {}, &request,
                 &response, [&](grpc::Status answer) {
                   status = std::move(answer);
                   done.Notify();
                 });
  done.WaitForNotification();
  ASSERT_TRUE(status.ok()) << status.error_message();
  grpc::Slice bytes;
  ASSERT_TRUE(response.DumpToSingleSlice(&bytes).ok());
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), "\x08\x01");
}

TEST(GrpcServer, StopsWithStreamsOpen) {
  auto served = std::make_unique<ServedCluster>();
  const auto worker = served->Join("w0");
  const int64_t job = served->Submit(SpecOf(1));
  worker->TakeRank();
  served->Await(job, RUNNING);
  const auto context = Call();
  WatchJobRequest request;
  request.set_id(job);
  const auto watch = served->stub->WatchJob(context.get(), request);
  WatchJobResponse news;
  ASSERT_TRUE(watch->Read(&news));
  served->server.Stop();
  while (watch->Read(&news)) {
  }
  EXPECT_FALSE(watch->Finish().ok());
  // A worker that loses its stream so is no failure of its job.
  served->host.Read([&](const Cluster& cluster, absl::Time) {
    EXPECT_EQ((*cluster.FindJob(JobId(job)))->status.state(), RUNNING);
  });
}

// What the store answers are events, whose actions need all of the server.
TEST(GrpcServer, StopsWhenTheStoreHasAnswered) {
  ServedCluster served;
  absl::Notification asked, stopped;
  GrpcServerOptions::Done answer;
  GrpcServer server(served.host, served.compiler,
                    {.flush =
                         [&](GrpcServerOptions::Done done) {
                           answer = std::move(done);
                           asked.Notify();
                         },
                     .told = [](auto, const auto&) {}});
  server.Carry({AwaitStored{JobId(1), 1}});
  asked.WaitForNotification();
  std::thread stopper([&] {
    server.Stop();
    stopped.Notify();
  });
  EXPECT_FALSE(stopped.WaitForNotificationWithTimeout(absl::Seconds(1)));
  answer(absl::ResourceExhaustedError("disk full"));
  stopper.join();
}

TEST(GrpcServer, ManyWorkersAtOnce) {
  ServedCluster served;
  std::vector<std::unique_ptr<FakeWorker>> workers;
  for (int i = 0; i < 200; ++i) {
    workers.push_back(
        std::make_unique<FakeWorker>(served.channel, absl::StrCat("w", i)));
  }
  for (const auto& worker : workers) {
    EXPECT_TRUE(worker->Read()->has_registered());
  }
  const int64_t job = served.Submit(SpecOf(200, 1));
  std::vector<Assignment> ranks;
  for (const auto& worker : workers) ranks.push_back(worker->TakeRank());
  served.Await(job, RUNNING);
  for (int i = 0; i < 200; ++i) {
    workers[i]->Step(ranks[i], 1);
    workers[i]->End(ranks[i], true, 1);
  }
  EXPECT_EQ(served.Await(job, SUCCEEDED).steps_done(), 1);
}

}  // namespace
}  // namespace troupe
