#include "clients/verify/verify_jobs.h"

#include "gtest/gtest.h"

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

TEST(CheckVerifiable, RefusesWhatTrainsAnotherModel) {
  JobSpec job = Job();
  job.mutable_parallelism()->set_pipeline(2);
  job.mutable_parallelism()->set_pipeline_schedule("zb_h1");
  EXPECT_TRUE(CheckVerifiable(job).ok());
  job.mutable_parallelism()->set_pipeline_schedule("pipedream");
  EXPECT_EQ(CheckVerifiable(job).code(), absl::StatusCode::kInvalidArgument);
  job.mutable_parallelism()->set_pipeline(1);
  EXPECT_TRUE(CheckVerifiable(job).ok());
  job.mutable_model()->set_architecture("synthetic");
  EXPECT_EQ(CheckVerifiable(job).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe
