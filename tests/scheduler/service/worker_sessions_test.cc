#include "gtest/gtest.h"
#include "tests/scheduler/service/served_cluster.h"

namespace troupe {
namespace {

TEST(WorkerSessions, AJobFromStartToEnd) {
  ServedCluster served;
  const auto w0 = served.Join("w0");
  const auto w1 = served.Join("w1");
  const int64_t job = served.Submit(SpecOf(2, 2));
  const Assignment r0 = w0->TakeRank();
  const Assignment r1 = w1->TakeRank();
  EXPECT_EQ(r1.ref().rank(), 1);
  served.Await(job, RUNNING);
  for (int step = 1; step <= 2; ++step) {
    w0->Step(r0, step);
    w1->Step(r1, step);
  }
  w0->End(r0, true, 2);
  w1->End(r1, true, 2);
  EXPECT_EQ(served.Await(job, SUCCEEDED).steps_done(), 2);
}

TEST(WorkerSessions, SaysWhatIsStored) {
  ServedCluster served;
  const auto w0 = served.Join("w0");
  const int64_t job = served.Submit(SpecOf(1, 9));
  const Assignment start = w0->TakeRank();
  served.Await(job, RUNNING);
  w0->End(start, false, 0);
  while (!w0->ReadStored().ended()) {
  }
  EXPECT_EQ(served.Await(job, FAILED).ended_ranks_size(), 0);
}

// A disk that is full for long must not stop the training.
TEST(WorkerSessions, SaysThatACommitCannotBeStored) {
  ServedCluster served;
  const auto w0 = served.Join("w0");
  JobSpec spec = SpecOf(1, 9);
  spec.mutable_checkpoint()->set_directory("/c");
  const int64_t job = served.Submit(spec);
  const Assignment start = w0->TakeRank();
  served.Await(job, RUNNING);
  for (const bool full : {true, false}) {
    if (full) served.durable = absl::ResourceExhaustedError("the disk is full");
    if (!full) served.durable = absl::OkStatus();
    const int64_t step = full ? 3 : 6;
    WorkerMessage message;
    CheckpointCommitted& committed = *message.mutable_committed();
    *committed.mutable_ref() = start.ref();
    committed.mutable_checkpoint()->set_step(step);
    w0->Write(message);
    const CheckpointDone done = w0->Read()->done();
    EXPECT_EQ(done.step(), step);
    EXPECT_EQ(done.unstored(), full);
  }
}

TEST(WorkerSessions, ABrokenStreamIsALostWorker) {
  ServedCluster served;
  const auto w0 = served.Join("w0");
  auto w1 = served.Join("w1");
  const int64_t job = served.Submit(SpecOf(2, 9));
  const Assignment r0 = w0->TakeRank();
  w1->TakeRank();
  served.Await(job, RUNNING);
  w1.reset();
  EXPECT_EQ(served.Await(job, STOPPING).reason(),
            "w1 (rank 1) was lost in step 1: connection closed");
  EXPECT_TRUE(w0->Read()->stop().peers_gone());
  w0->End(r0, false, 0);
  served.Await(job, FAILED);
  // The name is free, and the cluster takes the next job.
  w1 = served.Join("w1");
  const int64_t next = served.Submit(SpecOf(2, 1));
  w0->TakeRank();
  w1->TakeRank();
  served.Await(next, RUNNING);
}

TEST(WorkerSessions, RefusalsHaveTheirCodes) {
  ServedCluster served;
  const auto first = served.Join("w0");
  FakeWorker twin(served.channel, "w0");
  EXPECT_FALSE(twin.Read().has_value());
  EXPECT_EQ(twin.Finish().error_code(), grpc::StatusCode::ALREADY_EXISTS);

  const auto stub = Workers::NewStub(served.channel);
  const auto context = Call();
  const auto stream = stub->Session(context.get());
  WorkerMessage heartbeat;
  heartbeat.mutable_heartbeat();
  stream->Write(heartbeat);
  SchedulerMessage answer;
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST(WorkerSessions, AWorkerWhoseLeaseEndsIsDropped) {
  ServedCluster served;
  const auto worker = served.Join("w0");
  served.host.Apply([](Cluster& cluster, absl::Time now, Actions& actions) {
    cluster.Tick(now + absl::Seconds(6), actions);
  });
  EXPECT_FALSE(worker->Read().has_value());
  const grpc::Status end = worker->Finish();
  EXPECT_FALSE(end.ok());
  EXPECT_EQ(end.error_message().substr(0, 13), "not heard for");
}

TEST(WorkerSessions, AGoodbyeEndsTheStream) {
  ServedCluster served;
  const auto worker = served.Join("w0");
  WorkerMessage goodbye;
  goodbye.mutable_goodbye()->set_reason("asked to stop");
  worker->Write(goodbye);
  EXPECT_FALSE(worker->Read().has_value());
  served.AwaitThat([](const Cluster& cluster) {
    return cluster.workers().Find(WorkerId(1))->status.state() ==
           WorkerStatus::LEFT;
  });
}

TEST(WorkerSessions, WhoDoesNotRegisterInTimeIsEnded) {
  ServedCluster served({}, {.insecure = 1}, absl::Milliseconds(50));
  const auto stub = Workers::NewStub(served.channel);
  const auto context = Call();
  const auto stream = stub->Session(context.get());
  SchedulerMessage answer;
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_NE(served.Join("w0"), nullptr) << "others are not held up";
}

TEST(WorkerSessions, StreamsThatSayNothingAreEndedAndAreNoWorkers) {
  ServedCluster served;
  for (int i = 0; i < 20; ++i) {
    const auto stub = Workers::NewStub(served.channel);
    const auto context = Call();
    const auto stream = stub->Session(context.get());
    if (i % 2 == 0) {
      context->TryCancel();
      stream->Finish();
      continue;
    }
    stream->WritesDone();
    SchedulerMessage answer;
    EXPECT_FALSE(stream->Read(&answer));
    const grpc::Status end = stream->Finish();
    EXPECT_TRUE(end.ok()) << end.error_message();
  }
  const auto worker = served.Join("w0");
  served.host.Read([](const Cluster& cluster, absl::Time) {
    ASSERT_EQ(cluster.workers().all().size(), 1u);
    EXPECT_EQ(cluster.workers().Alive().size(), 1u);
  });
}

}  // namespace
}  // namespace troupe
