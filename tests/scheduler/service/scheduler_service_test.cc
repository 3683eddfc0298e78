#include "gtest/gtest.h"
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
}

}  // namespace
}  // namespace troupe
