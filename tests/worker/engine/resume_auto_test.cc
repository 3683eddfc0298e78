// `checkpoint.resume: auto`: the same job, submitted again and again.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/small_job.h"
#include "tests/storage/temp_dir.h"
#include "worker/engine/starting_point.h"

namespace troupe {
namespace {

// Of six steps, with a checkpoint after every second.
JobSpec AutoJob(const TempDir& dir) {
  JobSpec job = SmallJob();
  job.mutable_checkpoint()->set_directory(dir.File("checkpoints"));
  job.mutable_checkpoint()->set_every(2);
  job.mutable_checkpoint()->set_resume("auto");
  job.mutable_training()->set_stop_after(6);
  return job;
}

TrainingRun TrainAuto(const JobSpec& job, int ranks = 1) {
  return Train(job, {.ranks = ranks, .resume = "auto"});
}

std::string At(const JobSpec& job, int64_t step) {
  return CheckpointPath(job.checkpoint().directory(), step);
}

void Damage(const JobSpec& job, int64_t step) {
  const std::string shard = At(job, step) + "/rank-00000.safetensors";
  std::fstream file(shard, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-1, std::ios::end);
  const char last = static_cast<char>(file.get() ^ 4);
  file.seekp(-1, std::ios::end);
  file.put(last);
}

TEST(ResumeAuto, TheSameJobStartsThenGoesOnThenIsDone) {
  const TempDir dir;
  JobSpec job = AutoJob(dir);
  const TrainingRun unbroken = TrainAuto(job);
  ASSERT_TRUE(unbroken.status().ok()) << unbroken.status();
  ASSERT_EQ(unbroken.steps[0].size(), 6u);
  ASSERT_EQ(unbroken.warnings.size(), 1u);
  EXPECT_EQ(unbroken.warnings[0],
            absl::StrCat("checkpoint.resume auto: no checkpoint is in ",
                         job.checkpoint().directory(),
                         "; training starts at step 1"));
  // As where the run ended after step 4.
  std::filesystem::remove_all(At(job, 6));
  const TrainingRun rest = TrainAuto(job);
  ASSERT_TRUE(rest.status().ok()) << rest.status();
  EXPECT_TRUE(rest.warnings.empty()) << rest.warnings[0];
  ASSERT_EQ(rest.steps[0].size(), 2u);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(rest.steps[0][i].step(), 5 + i);
    EXPECT_EQ(rest.steps[0][i].loss(), unbroken.steps[0][4 + i].loss());
  }
  const TrainingRun done = TrainAuto(job);
  ASSERT_TRUE(done.status().ok()) << done.status();
  EXPECT_TRUE(done.steps[0].empty());
  ASSERT_EQ(done.warnings.size(), 1u);
  EXPECT_EQ(done.warnings[0],
            absl::StrCat("nothing is left to train: checkpoint ", At(job, 6),
                         " is of step 6, and training ends after step 6; to "
                         "train on, raise training.steps"));
  // Asked for less than there is.
  job.mutable_training()->set_stop_after(3);
  const TrainingRun beyond = TrainAuto(job);
  ASSERT_TRUE(beyond.status().ok()) << beyond.status();
  EXPECT_TRUE(beyond.steps[0].empty());
  job.mutable_training()->clear_stop_after();
  job.mutable_training()->set_steps(4);
  const TrainingRun fewer = TrainAuto(job);
  ASSERT_TRUE(fewer.status().ok()) << fewer.status();
  EXPECT_TRUE(fewer.steps[0].empty());
  EXPECT_TRUE(std::filesystem::exists(At(job, 6)));
}

TEST(ResumeAuto, AStartedAndAResumedRunHaveOnePlan) {
  const TempDir dir;
  JobSpec job = AutoJob(dir);
  job.mutable_parallelism()->set_data(2);
  job.mutable_training()->set_micro_batch_size(4);
  const TrainingRun first = TrainAuto(job, 2);
  ASSERT_TRUE(first.status().ok()) << first.status();
  std::filesystem::remove_all(At(job, 6));
  const TrainingRun second = TrainAuto(job, 2);
  ASSERT_TRUE(second.status().ok()) << second.status();
  EXPECT_EQ(first.plan.SerializeAsString(), second.plan.SerializeAsString());
}

TEST(ResumeAuto, ATornOrDamagedNewestOneIsSkipped) {
  const TempDir dir;
  JobSpec job = AutoJob(dir);
  ASSERT_TRUE(TrainAuto(job).status().ok());
  Damage(job, 6);
  std::filesystem::remove(At(job, 4) + "/manifest.json");
  const TrainingRun run = TrainAuto(job);
  ASSERT_TRUE(run.status().ok()) << run.status();
  ASSERT_EQ(run.steps[0].size(), 4u);
  EXPECT_EQ(run.steps[0][0].step(), 3);
  ASSERT_EQ(run.warnings.size(), 2u);
  EXPECT_TRUE(absl::StrContains(run.warnings[0], At(job, 6)));
  EXPECT_TRUE(absl::StrContains(run.warnings[1], At(job, 4)));
}

// To begin again would lose a long run unnoticed.
TEST(ResumeAuto, WhereAllAreDamagedNothingStarts) {
  const TempDir dir;
  JobSpec job = AutoJob(dir);
  job.mutable_checkpoint()->set_every(0);
  ASSERT_TRUE(TrainAuto(job).status().ok());
  Damage(job, 6);
  const TrainingRun run = TrainAuto(job);
  EXPECT_TRUE(absl::IsNotFound(run.status())) << run.status();
  for (const char* const part :
       {"checkpoint.resume auto", "no complete checkpoint among 1",
        "its content changed", "checkpoint.overwrite: true"}) {
    EXPECT_TRUE(absl::StrContains(run.status().message(), part))
        << run.status();
  }
  EXPECT_TRUE(std::filesystem::exists(At(job, 6)));
}

// What was being written when a run was killed is no checkpoint.
TEST(ResumeAuto, AnUncommittedFirstCheckpointIsAFreshStart) {
  const TempDir dir;
  JobSpec job = AutoJob(dir);
  std::filesystem::create_directories(At(job, 2) + ".tmp-job-1-abc-1");
  const TrainingRun run = TrainAuto(job);
  ASSERT_TRUE(run.status().ok()) << run.status();
  EXPECT_EQ(run.steps[0].size(), 6u);
}

TEST(ResumeAuto, ACheckpointOfAnotherModelIsRefused) {
  const TempDir dir;
  JobSpec job = AutoJob(dir);
  ASSERT_TRUE(TrainAuto(job).status().ok());
  job.mutable_model()->set_num_hidden_layers(1);
  const absl::Status status = TrainAuto(job).status();
  EXPECT_TRUE(absl::StrContains(status.message(), "it has transformer.h.1."))
      << status;
  EXPECT_TRUE(std::filesystem::exists(At(job, 6)));
}

}  // namespace
}  // namespace troupe
