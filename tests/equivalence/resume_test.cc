// A job that stops and resumes from a checkpoint trains the same model as one
// that never stopped, also where the second half runs on other ranks.
#include <cmath>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/small_job.h"

namespace troupe {
namespace {

JobSpec CheckpointedJob(const std::string& name) {
  JobSpec job = SmallJob();
  job.mutable_training()->set_dropout(0.1);
  job.mutable_training()->set_micro_batch_size(2);
  const std::string directory = absl::StrCat(testing::TempDir(), "/", name);
  std::filesystem::remove_all(directory);
  job.mutable_checkpoint()->set_directory(directory);
  job.mutable_checkpoint()->set_every(8);
  job.mutable_checkpoint()->set_keep(2);
  return job;
}

void ExpectContinues(const TrainingRun& resumed, const TrainingRun& whole,
                     double relative_error) {
  ASSERT_TRUE(resumed.status().ok()) << resumed.status();
  ASSERT_EQ(resumed.steps[0].size(), 12u);
  for (size_t i = 0; i < 12; ++i) {
    const StepRecord& got = resumed.steps[0][i];
    const StepRecord& want = whole.steps[0][i + 8];
    EXPECT_EQ(got.step(), want.step());
    EXPECT_EQ(got.samples_consumed(), want.samples_consumed());
    EXPECT_LE(std::abs(got.loss() - want.loss()), relative_error * want.loss())
        << "step " << got.step();
  }
}

TEST(Resume, ContinuesAsIfNothingHadHappened) {
  JobSpec job = CheckpointedJob("resume");
  job.mutable_parallelism()->set_data(2);
  const TrainingRun whole = Train(job, {.ranks = 2});
  ASSERT_TRUE(whole.status().ok()) << whole.status();
  // Of steps 8, 16 and 20 the newest two are kept.
  ASSERT_EQ(whole.checkpoints.size(), 3u);
  const auto kept = ListCheckpoints(job.checkpoint().directory());
  ASSERT_TRUE(kept.ok());
  ASSERT_EQ(kept->size(), 2u);
  EXPECT_EQ((*kept)[0].step, 16);
  EXPECT_EQ((*kept)[1].step, 20);
  EXPECT_TRUE(CheckCheckpoint((*kept)[1].path, CheckDepth::kChecksums).ok());

  // Keep all this time, so that step 8 is there.
  job.mutable_checkpoint()->set_keep(0);
  ASSERT_TRUE(Train(job, {.ranks = 2}).status().ok());
  const std::string step_8 = CheckpointPath(job.checkpoint().directory(), 8);
  job.clear_checkpoint();
  ExpectContinues(Train(job, {.ranks = 2, .resume = step_8}), whole, 1e-6);

  // Another plan: other ranks, other micro-batches.
  job.mutable_parallelism()->set_data(1);
  job.mutable_training()->set_micro_batch_size(4);
  ExpectContinues(Train(job, {.ranks = 1, .resume = step_8}), whole, 1e-5);
}

TEST(Resume, AnotherModelIsRefusedByName) {
  JobSpec job = CheckpointedJob("resume_other");
  job.mutable_training()->set_steps(1);
  job.mutable_lr_scheduler()->set_warmup_steps(0);
  ASSERT_TRUE(Train(job, {}).status().ok());
  const std::string path = CheckpointPath(job.checkpoint().directory(), 1);
  job.mutable_training()->set_steps(3);
  job.mutable_model()->set_hidden_size(48);
  const TrainingRun run = Train(job, {.resume = path});
  EXPECT_EQ(run.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(run.status().message().find("transformer.wte.weight is [61, 24]"),
            absl::string_view::npos)
      << run.status();
  EXPECT_EQ(run.bytes_left, 0u);
}

TEST(Resume, MissingMomentsAreNamed) {
  JobSpec job = CheckpointedJob("resume_moments");
  job.mutable_training()->set_steps(1);
  job.mutable_lr_scheduler()->set_warmup_steps(0);
  job.mutable_optimizer()->set_name("sgd");
  ASSERT_TRUE(Train(job, {}).status().ok());
  const std::string path = CheckpointPath(job.checkpoint().directory(), 1);
  job.mutable_training()->set_steps(3);
  job.mutable_optimizer()->set_name("adamw");
  const TrainingRun run = Train(job, {.resume = path});
  EXPECT_NE(run.status().message().find("optimizer.exp_avg."),
            absl::string_view::npos)
      << run.status();
}

}  // namespace
}  // namespace troupe
