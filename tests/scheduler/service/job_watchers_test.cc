#include "scheduler/service/job_watchers.h"

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "tests/scheduler/service/served_cluster.h"

namespace troupe {
namespace {

TEST(JobWatchers, SeesEveryStepOnceAndTheEnd) {
  ServedCluster served;
  const auto worker = served.Join("w0");
  const int64_t job = served.Submit(SpecOf(1, 100));
  const Assignment rank = worker->TakeRank();
  const auto context = Call();
  WatchJobRequest request;
  request.set_id(job);
  request.set_from_step(10);
  const auto watch = served.stub->WatchJob(context.get(), request);
  for (int step = 1; step <= 100; ++step) worker->Step(rank, step);
  worker->End(rank, true, 100);
  int64_t next = 11;
  int events = 0, derived = 0, meshes = 0;
  WatchJobResponse news;
  while (watch->Read(&news)) {
    for (const StepRecord& step : news.steps()) EXPECT_EQ(step.step(), next++);
    events += news.events_size();
    derived += news.has_derived();
    meshes += news.has_mesh();
  }
  EXPECT_TRUE(watch->Finish().ok());
  EXPECT_EQ(next, 101);
  EXPECT_EQ(news.status().state(), SUCCEEDED);
  // Queued, submitted by, starting, running, succeeded.
  EXPECT_EQ(events, 5);
  EXPECT_EQ(derived, 1);
  EXPECT_EQ(meshes, 1);
}

TEST(JobWatchers, AnEndedJobIsToldAtOnce) {
  ServedCluster served;
  const int64_t job = served.Submit(SpecOf(1));
  ASSERT_TRUE(served.Cancel(job).ok());
  EXPECT_EQ(served.Await(job, CANCELLED).id(), job);
}

TEST(JobWatchers, NoSuchJob) {
  ServedCluster served;
  const auto context = Call();
  WatchJobRequest request;
  request.set_id(7);
  const auto watch = served.stub->WatchJob(context.get(), request);
  WatchJobResponse news;
  EXPECT_FALSE(watch->Read(&news));
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST(JobWatchers, OneClientHasSoMany) {
  ServedCluster served;
  const int64_t job = served.Submit(SpecOf(1));
  WatchJobRequest request;
  request.set_id(job);
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<WatchJobResponse>>> watches;
  WatchJobResponse news;
  const auto watch = [&] {
    contexts.push_back(Call());
    watches.push_back(served.stub->WatchJob(contexts.back().get(), request));
    return watches.back()->Read(&news);
  };
  for (int i = 0; i < JobWatchers::kWatchesOfClientMax; ++i) {
    ASSERT_TRUE(watch()) << i;
  }
  EXPECT_FALSE(watch());
  const grpc::Status refused = watches.back()->Finish();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(refused.error_message().find("at most 1000 may"),
            std::string::npos);
  // One that goes makes room for another, as soon as it is gone.
  contexts.front()->TryCancel();
  watches.front()->Finish();
  while (!watch()) {
  }
  for (const auto& context : contexts) context->TryCancel();
}

TEST(JobWatchers, ClientsThatGoAwayHarmNothing) {
  ServedCluster served;
  const auto worker = served.Join("w0");
  const int64_t job = served.Submit(SpecOf(1, 50));
  const Assignment rank = worker->TakeRank();
  WatchJobRequest request;
  request.set_id(job);
  for (int i = 0; i < 25; ++i) {
    const auto context = Call();
    const auto watch = served.stub->WatchJob(context.get(), request);
    worker->Step(rank, 2 * i + 1);
    WatchJobResponse news;
    if (i % 2 == 0) watch->Read(&news);
    context->TryCancel();
    watch->Finish();
    worker->Step(rank, 2 * i + 2);
  }
  worker->End(rank, true, 50);
  EXPECT_EQ(served.Await(job, SUCCEEDED).steps_done(), 50);
}

}  // namespace
}  // namespace troupe
