#include "clients/verify/verify_jobs.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/pipelines/pipelines.h"
#include "tests/equivalence/small_job.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

JobSpec Job() {
  JobSpec job;
  job.mutable_training()->set_steps(1000);
  job.mutable_training()->set_validate_every(10);
  job.mutable_lr_scheduler()->set_warmup_steps(100);
  job.mutable_parallelism()->set_data(4);
  job.mutable_parallelism()->set_servers(2);
  job.mutable_servers()->set_mode("sync");
  job.mutable_checkpoint()->set_directory("mine");
  job.mutable_checkpoint()->set_resume("latest");
  job.mutable_metrics()->set_tensorboard("mine/tb");
  return job;
}

TEST(MakeVerifyJobs, BothEndEarlyAndSaveElsewhere) {
  const VerifyJobs jobs =
      MakeVerifyJobs(Job(), {.steps = 5, .directory = "/shared"});
  for (const JobSpec* job : {&jobs.run, &jobs.reference}) {
    EXPECT_EQ(job->training().steps(), 1000) << "the learning rates' length";
    EXPECT_EQ(job->training().stop_after(), 5);
    EXPECT_FALSE(job->training().has_validate_every());
    EXPECT_FALSE(job->lr_scheduler().has_warmup_steps())
        << "what is wrong must move the weights";
    EXPECT_EQ(job->checkpoint().every(), 4);
    EXPECT_FALSE(job->checkpoint().has_resume());
    EXPECT_TRUE(job->metrics().has_directory());
    EXPECT_EQ(job->metrics().directory() + job->metrics().tensorboard(), "");
    EXPECT_EQ(job->checkpoint().directory().rfind("/shared/", 0), 0u);
  }
  EXPECT_NE(jobs.run.checkpoint().directory(),
            jobs.reference.checkpoint().directory());
  EXPECT_EQ(jobs.run.parallelism().data(), 4);
  EXPECT_FALSE(jobs.reference.has_parallelism());
  EXPECT_TRUE(jobs.run.has_servers());
  EXPECT_FALSE(jobs.reference.has_servers());
}

TEST(MakeVerifyJobs, OneStepNeedsNoneBefore) {
  EXPECT_EQ(MakeVerifyJobs(Job(), {.steps = 1, .directory = "/shared"})
                .run.checkpoint()
                .every(),
            1);
}

TEST(MakeVerifyJobs, AShorterJobIsComparedToItsEnd) {
  JobSpec job = Job();
  job.mutable_training()->set_steps(2);
  const VerifyJobs jobs =
      MakeVerifyJobs(job, {.steps = 3, .directory = "/shared"});
  EXPECT_EQ(jobs.run.training().stop_after(), 2);
  EXPECT_EQ(jobs.run.checkpoint().every(), 1);
}

TEST(CheckVerifiable, RefusesWhatTrainsNothing) {
  JobSpec job = Job();
  EXPECT_TRUE(CheckVerifiable(job).ok());
  job.set_evaluate(true);
  EXPECT_EQ(CheckVerifiable(job).code(), absl::StatusCode::kInvalidArgument);
  job.set_evaluate(false);
  job.mutable_model()->set_architecture("synthetic");
  EXPECT_EQ(CheckVerifiable(job).code(), absl::StatusCode::kInvalidArgument);
}

// What the plan says decides, and no name of a schedule.
TEST(CheckTrainsAsOneRank, RefusesEveryScheduleThatDelaysGradients) {
  int delays = 0;
  for (const Pipeline& schedule : Pipelines()) {
    JobSpec job = SmallJob();
    ParallelismSpec& parallelism = *job.mutable_parallelism();
    parallelism.set_pipeline(2);
    parallelism.set_pipeline_schedule(std::string(schedule.name));
    job.mutable_training()->set_gradient_clipping(0);
    job.mutable_training()->set_micro_batch_size(2);  // four of them
    const Plan plan = ExamplePlan(job);
    const absl::Status status = CheckTrainsAsOneRank(plan);
    EXPECT_EQ(status.ok(), !schedule.asynchronous) << schedule.name;
    if (status.ok()) continue;
    ++delays;
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(
        std::string(status.message()),
        testing::StartsWith(absl::StrCat(
            "parallelism.pipeline_schedule: ", schedule.name, " trains with")));
  }
  EXPECT_EQ(delays, 2);
  JobSpec job = SmallJob();
  job.mutable_parallelism()->set_data(2);
  job.mutable_parallelism()->set_servers(1);
  job.mutable_servers()->set_mode("async");
  EXPECT_THAT(std::string(CheckTrainsAsOneRank(ExamplePlan(job)).message()),
              testing::StartsWith("servers.mode: async trains with delayed"));
  job.mutable_parallelism()->set_data(1);
  EXPECT_TRUE(CheckTrainsAsOneRank(ExamplePlan(job)).ok());
}

}  // namespace
}  // namespace troupe
