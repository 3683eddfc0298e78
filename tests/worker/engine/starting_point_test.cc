#include "worker/engine/starting_point.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/small_job.h"

namespace troupe {
namespace {

// Ends after that step; its checkpoints go into an empty folder of that name.
JobSpec SavingJob(const std::string& folder, int64_t stop_after) {
  JobSpec job = SmallJob();
  const std::string directory = absl::StrCat(testing::TempDir(), "/", folder);
  std::filesystem::remove_all(directory);
  job.mutable_checkpoint()->set_directory(directory);
  job.mutable_training()->set_stop_after(stop_after);
  return job;
}

TEST(StartingPoint, LatestSkipsACheckpointWithAFlippedBit) {
  JobSpec job = SavingJob("flipped", 10);
  const std::string& directory = job.checkpoint().directory();
  job.mutable_checkpoint()->set_every(5);
  ASSERT_TRUE(Train(job, {}).status().ok());
  const std::string shard =
      CheckpointPath(directory, 10) + "/rank-00000.safetensors";
  {
    std::fstream file(shard, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(-1, std::ios::end);
    const char last = static_cast<char>(file.get() ^ 4);
    file.seekp(-1, std::ios::end);
    file.put(last);
  }
  job.mutable_training()->set_stop_after(8);
  const TrainingRun run = Train(job, {.resume = "latest"});
  ASSERT_TRUE(run.status().ok()) << run.status();
  ASSERT_EQ(run.steps[0].size(), 3u);
  EXPECT_EQ(run.steps[0][0].step(), 6);
  ASSERT_EQ(run.warnings.size(), 1u);
  EXPECT_TRUE(absl::StrContains(run.warnings[0], shard)) << run.warnings[0];
}

TEST(StartingPoint, AStopBeforeTheCheckpointIsRefused) {
  JobSpec job = SavingJob("past", 5);
  ASSERT_TRUE(Train(job, {}).status().ok());
  job.mutable_training()->set_stop_after(4);
  const TrainingRun run = Train(job, {.resume = "latest"});
  EXPECT_TRUE(absl::IsInvalidArgument(run.status())) << run.status();
  EXPECT_TRUE(
      absl::StrContains(run.status().message(), "training.stop_after: 4, but"))
      << run.status();
}

TEST(StartingPoint, ACheckpointOfAnotherModelIsRefused) {
  JobSpec job = SavingJob("other", 1);
  ASSERT_TRUE(Train(job, {}).status().ok());
  JobSpec shallow = job;
  shallow.mutable_model()->set_num_hidden_layers(1);
  absl::Status status = Train(shallow, {.resume = "latest"}).status();
  EXPECT_TRUE(absl::StrContains(status.message(), "it has transformer.h.1."))
      << "the layers that are left over do not vanish silently: " << status;
  JobSpec heads = job;
  heads.mutable_model()->set_num_attention_heads(1);
  status = Train(heads, {.resume = "latest"}).status();
  EXPECT_TRUE(absl::StrContains(status.message(), "there, but 1 in this job"))
      << status;
}

TEST(StartingPoint, WarnsOfOtherSettingsThanTheCheckpointWasTrainedWith) {
  JobSpec job = SavingJob("settings", 1);
  const std::string& directory = job.checkpoint().directory();
  ASSERT_TRUE(Train(job, {}).status().ok());
  job.mutable_training()->set_stop_after(2);
  job.mutable_optimizer()->set_lr(2 * job.optimizer().lr());
  const TrainingRun run = Train(job, {.resume = CheckpointPath(directory, 1)});
  ASSERT_TRUE(run.status().ok()) << run.status();
  ASSERT_EQ(run.warnings.size(), 1u);
  EXPECT_TRUE(absl::StrContains(run.warnings[0],
                                "was trained with other settings: "
                                "optimizer.lr is "))
      << run.warnings[0];
}

TEST(StartingPoint, WarnsOfWhatAnEarlierRunLeft) {
  JobSpec job = SavingJob("again", 5);
  const std::string& directory = job.checkpoint().directory();
  EXPECT_TRUE(Train(job, {}).warnings.empty());
  const TrainingRun again = Train(job, {});
  ASSERT_TRUE(again.status().ok()) << again.status();
  ASSERT_EQ(again.warnings.size(), 1u);
  EXPECT_TRUE(
      absl::StrContains(again.warnings[0], CheckpointPath(directory, 5)))
      << again.warnings[0];
  job.mutable_training()->set_stop_after(6);
  EXPECT_TRUE(
      Train(job, {.resume = CheckpointPath(directory, 5)}).warnings.empty());
}

}  // namespace
}  // namespace troupe
