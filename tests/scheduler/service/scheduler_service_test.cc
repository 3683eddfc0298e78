#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "google/protobuf/unknown_field_set.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "proto/base/steady_time.h"
#include "proto/build_version.h"
#include "proto/protocol_version.h"
#include "scheduler/service/unread_answers.h"
#include "tests/scheduler/service/served_cluster.h"

namespace troupe {
namespace {

TEST(SchedulerService, SubmitDescribeListCancel) {
  ServedCluster served;
  const int64_t job = served.Submit(SpecOf(2));
  DescribeJobRequest describe;
  describe.set_id(job);
  JobDescription description;
  ASSERT_TRUE(
      served.stub->DescribeJob(Call().get(), describe, &description).ok());
  EXPECT_EQ(description.status().reason(),
            "waits for 2 workers; none is registered");
  ListJobsResponse jobs;
  ASSERT_TRUE(served.stub->ListJobs(Call().get(), {}, &jobs).ok());
  EXPECT_EQ(jobs.jobs_size(), 1);
  EXPECT_TRUE(served.Cancel(job).ok());
  EXPECT_TRUE(served.Cancel(job).ok()) << "again changes nothing";
  const auto worker = served.Join("w0");
  ListWorkersResponse workers;
  ASSERT_TRUE(served.stub->ListWorkers(Call().get(), {}, &workers).ok());
  EXPECT_EQ(workers.workers(0).description().name(), "w0");
  EXPECT_EQ(served.rpcs, 6);
}

TEST(SchedulerService, ErrorsKeepCodeAndPath) {
  ServedCluster served;
  SubmitJobRequest submit;
  *submit.mutable_job() = SpecOf(1);
  submit.mutable_job()->set_name("wrong");
  SubmitJobResponse response;
  grpc::Status status = served.stub->SubmitJob(Call().get(), submit, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "name: this one is wrong");
  EXPECT_EQ(served.Cancel(9).error_code(), grpc::StatusCode::NOT_FOUND);
  PlanJobRequest plan;
  *plan.mutable_job() = SpecOf(1);
  PlanJobResponse planned;
  status = served.stub->PlanJob(Call().get(), plan, &planned);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  GetTimelineRequest timeline;
  timeline.set_id(9);
  GetTimelineResponse timelines;
  EXPECT_EQ(
      served.stub->GetTimeline(Call().get(), timeline, &timelines).error_code(),
      grpc::StatusCode::NOT_FOUND);
  DescribeJobRequest describe;
  describe.set_id(9);
  JobDescription description;
  EXPECT_EQ(served.stub->DescribeJob(Call().get(), describe, &description)
                .error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST(SchedulerService, AJobWithFieldsThatItDoesNotKnowIsRefusedByName) {
  ServedCluster served;
  const auto worker = served.Join("w0");
  SubmitJobRequest submit;
  *submit.mutable_job() = SpecOf(1);
  submit.add_fields("name");
  submit.add_fields("training.novelties");
  SubmitJobResponse response;
  grpc::Status status = served.stub->SubmitJob(Call().get(), submit, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(),
              testing::StartsWith("training.novelties: "));
  PlanJobRequest plan;
  *plan.mutable_job() = SpecOf(1);
  plan.add_fields("novelty");
  PlanJobResponse planned;
  status = served.stub->PlanJob(Call().get(), plan, &planned);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), testing::StartsWith("novelty: "));
  plan.clear_fields();
  google::protobuf::Message& job = *plan.mutable_job();
  job.GetReflection()->MutableUnknownFields(&job)->AddVarint(9999, 1);
  status = served.stub->PlanJob(Call().get(), plan, &planned);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), testing::StartsWith("#9999: "));
}

TEST(SchedulerService, AClientWithoutAVersionInCommonIsToldSo) {
  ServedCluster served;
  BuildVersion build;
  build.set_build("troupe 9.9");
  build.set_protocol(kProtocolVersion + 9);
  for (const int32_t oldest : {kProtocolVersion, kProtocolVersion + 1}) {
    build.set_oldest_protocol(oldest);
    const auto context = Call();
    context->AddMetadata(kBuildVersionKey, build.SerializeAsString());
    ListJobsResponse jobs;
    const grpc::Status status = served.stub->ListJobs(context.get(), {}, &jobs);
    if (oldest == kProtocolVersion) {
      EXPECT_TRUE(status.ok()) << status.error_message();
      continue;
    }
    EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_EQ(status.error_message(),
              absl::StrCat(
                  "the client is troupe 9.9 and speaks protocol versions ",
                  oldest, " to ", kProtocolVersion + 9, "; this scheduler is ",
                  kBuildName, " and speaks protocol version ", kProtocolVersion,
                  "; install one build on both (the latter is older)"));
  }
  const auto context = Call();
  context->AddMetadata(kBuildVersionKey, "garbage");
  WatchJobResponse news;
  const auto watch = served.stub->WatchJob(context.get(), {});
  EXPECT_FALSE(watch->Read(&news));
  EXPECT_EQ(watch->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST(SchedulerService, CordonsWorkers) {
  ServedCluster served;
  const auto worker = served.Join("w0");
  CordonWorkerRequest request;
  CordonWorkerResponse response;
  request.set_name("w7");
  EXPECT_EQ(
      served.stub->CordonWorker(Call().get(), request, &response).error_code(),
      grpc::StatusCode::NOT_FOUND);
  request.set_name("w0");
  request.set_cordon(true);
  ASSERT_TRUE(served.stub->CordonWorker(Call().get(), request, &response).ok());
  EXPECT_TRUE(response.worker().cordoned());
  EXPECT_EQ(response.worker().set_aside(), "cordoned");
  ListWorkersResponse workers;
  ASSERT_TRUE(served.stub->ListWorkers(Call().get(), {}, &workers).ok());
  EXPECT_EQ(workers.workers(0).set_aside(), "cordoned");
}

TEST(SchedulerService, PlansAndTimelines) {
  ServedCluster served;
  const auto worker = served.Join("w0");
  PlanJobRequest plan;
  *plan.mutable_job() = SpecOf(1);
  PlanJobResponse planned;
  ASSERT_TRUE(served.stub->PlanJob(Call().get(), plan, &planned).ok());
  EXPECT_EQ(planned.plan().roles_size(), 0);
  plan.set_programs(true);
  ASSERT_TRUE(served.stub->PlanJob(Call().get(), plan, &planned).ok());
  EXPECT_EQ(planned.plan().roles_size(), 1);
  plan.set_explain(true);
  ASSERT_TRUE(served.stub->PlanJob(Call().get(), plan, &planned).ok());
  EXPECT_FALSE(planned.has_plan());
  EXPECT_EQ(planned.explanation().ways(0).bytes_sent_per_step(), 1);
  GetTimelineRequest request;
  request.set_id(served.Submit(SpecOf(1)));
  GetTimelineResponse timelines;
  ASSERT_TRUE(served.stub->GetTimeline(Call().get(), request, &timelines).ok());
  EXPECT_TRUE(timelines.has_predicted());
}

TEST(SchedulerService, AJobThatCannotBeStoredIsNotTaken) {
  ServedCluster served;
  served.durable = absl::ResourceExhaustedError("the disk is full");
  SubmitJobRequest submit;
  *submit.mutable_job() = SpecOf(1);
  SubmitJobResponse response;
  const grpc::Status status =
      served.stub->SubmitJob(Call().get(), submit, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.error_message(),
            "the job is not taken, for it cannot be stored: the disk is full");
  served.host.Read([](const Cluster& cluster, absl::Time) {
    EXPECT_EQ(cluster.jobs().all().begin()->second->status.state(), CANCELLED);
  });
  // Others that try would push jobs that have ended out of the list.
  const grpc::Status again =
      served.stub->SubmitJob(Call().get(), submit, &response);
  EXPECT_EQ(again.error_message(), status.error_message());
  served.host.Read([](const Cluster& cluster, absl::Time) {
    EXPECT_EQ(cluster.jobs().all().size(), 1u);
  });
  served.durable = absl::OkStatus();
  served.host.Apply([](Cluster& cluster, absl::Time now, Actions& actions) {
    cluster.Tick(now + Limits().store_retry, actions);
  });
  served.AwaitThat(
      [](const Cluster& cluster) { return cluster.CheckStore().ok(); });
  EXPECT_EQ(served.Submit(SpecOf(1)), 2);
}

// Asks for the list of jobs, and does not read it.
class UnreadList {
 public:
  explicit UnreadList(const std::shared_ptr<grpc::Channel>& channel)
      : call_(grpc::GenericStub(channel).PrepareCall(
            &context_, "/troupe.Scheduler/ListJobs", &queue_)) {
    call_->StartCall(this);
    Await();
    grpc::Slice nothing(std::string{});
    call_->WriteLast(grpc::ByteBuffer(&nothing, 1), {}, this);
    Await();
  }
  ~UnreadList() {
    context_.TryCancel();
    grpc::Status status;
    call_->Finish(&status, this);
    Await();
    queue_.Shutdown();
    void* tag;
    bool ok;
    while (queue_.Next(&tag, &ok)) {
    }
  }

 private:
  void Await() {
    void* tag;
    bool ok;
    CHECK(queue_.Next(&tag, &ok));
  }

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

// gRPC keeps what a client does not read.
TEST(SchedulerService, WhoReadsNoLargeAnswersGetsNoMore) {
  ServedCluster served;
  served.host.Apply([](Cluster& cluster, absl::Time now, Actions& actions) {
    for (int i = 0; i < 3; ++i) {  // of 4 MiB that a client takes by default
      JobSpec job = SpecOf(1);
      job.set_name(std::string(1 << 20, 'x'));
      EXPECT_TRUE(cluster.Submit(job, {}, now, actions).ok());
    }
  });
  // Asks until it is answered so, or has been for long.
  const auto await = [&](const std::string& error) {
    const absl::Time end = SteadyNow() + absl::Seconds(60);
    grpc::Status status;
    do {
      ListJobsResponse jobs;
      status = served.stub->ListJobs(Call().get(), ListJobsRequest(), &jobs);
      if (error.empty() ? status.ok()
                        : absl::StrContains(status.error_message(), error)) {
        return true;
      }
    } while (SteadyNow() < end);
    ADD_FAILURE() << status.error_message();
    return false;
  };
  ASSERT_TRUE(await(""));
  {
    std::vector<std::unique_ptr<UnreadList>> unread;
    for (int i = 0; i < 60; ++i) {
      unread.push_back(std::make_unique<UnreadList>(served.channel));
    }
    EXPECT_TRUE(await("wait to be read; read those first"));
    EXPECT_TRUE(served.Cancel(1).ok()) << "small answers go on";
  }
  EXPECT_TRUE(await(""));
}

TEST(UnreadAnswers, OneClientHasHalfOfWhatOthersLeave) {
  UnreadAnswers unread(64 << 10);
  EXPECT_TRUE(unread.MayAnswer("ada").ok());
  unread.Add("ada", 20 << 10);
  EXPECT_TRUE(unread.MayAnswer("ada").ok());
  unread.Add("ada", 12 << 10);
  EXPECT_EQ(unread.MayAnswer("ada").message(),
            "answers of 32 KiB that ada asked for wait to be read; read those "
            "first");
  unread.Add("bob", 15 << 10);
  EXPECT_TRUE(unread.MayAnswer("bob").ok()) << "of the other half";
  unread.Add("bob", 1 << 10);
  EXPECT_FALSE(unread.MayAnswer("bob").ok());
  EXPECT_TRUE(unread.MayAnswer("eve").ok());
  unread.Remove("ada", 12 << 10);
  EXPECT_TRUE(unread.MayAnswer("ada").ok());
}

}  // namespace
}  // namespace troupe
