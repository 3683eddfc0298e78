#include "worker/engine/train_loop.h"

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

TEST(TrainLoop, ReportsWhatPeopleWantToKnow) {
  JobSpec job = SmallJob();
  job.mutable_training()->set_steps(12);
  const TrainingRun run = Train(job, {});
  ASSERT_TRUE(run.status().ok()) << run.status();
  ASSERT_EQ(run.steps[0].size(), 12u);
  for (const StepRecord& step : run.steps[0]) {
    EXPECT_GT(step.loss(), 0);
    EXPECT_GT(step.grad_norm(), 0);
    EXPECT_GT(step.step_seconds(), 0);
    EXPECT_NEAR(step.tokens_per_second() * step.step_seconds(), 8 * 17, 1e-6);
    EXPECT_GT(step.mfu(), 0);
    EXPECT_GT(step.memory_bytes(), 1 << 20);
    EXPECT_EQ(step.samples_consumed(), step.step() * 8);
    // Every ten steps, and after the last.
    EXPECT_EQ(step.has_validation_loss(),
              step.step() == 10 || step.step() == 12);
  }
}

TEST(TrainLoop, AbortEndsEveryRankAndFreesItsMemory) {
  JobSpec job = SmallJob();
  job.mutable_training()->set_steps(1'000'000);
  job.mutable_training()->set_micro_batch_size(4);
  job.mutable_parallelism()->set_data(2);
  const TrainingRun run =
      Train(job, {.ranks = 2,
                  .on_step = [](int rank, const StepRecord& record,
                                const std::vector<TrainLoop*>& loops) {
                    if (rank != 0 || record.step() != 3) return;
                    loops[0]->Abort(
                        absl::CancelledError("its user changed his mind"));
                  }});
  EXPECT_EQ(run.statuses[0], absl::CancelledError("its user changed his mind"));
  // The other rank notices that its peer is gone.
  EXPECT_FALSE(run.statuses[1].ok());
  EXPECT_TRUE(absl::StartsWith(run.statuses[1].message(), "step 4: "))
      << run.statuses[1];
  EXPECT_EQ(MissingRank(run.statuses[1]), 0) << run.statuses[1];
  EXPECT_EQ(run.bytes_left, 0u);
}

TEST(TrainLoop, ARequestToStopEndsAllRanksAfterTheSameStep) {
  JobSpec job = SmallJob();
  job.mutable_training()->set_steps(1'000'000);
  job.mutable_training()->set_micro_batch_size(4);
  job.mutable_parallelism()->set_data(2);
  const TrainingRun run =
      Train(job, {.ranks = 2,
                  .on_step = [](int rank, const StepRecord& record,
                                const std::vector<TrainLoop*>& loops) {
                    if (rank == 1 && record.step() == 3) {
                      loops[1]->RequestStop();
                    }
                  }});
  EXPECT_TRUE(absl::IsCancelled(run.statuses[0])) << run.statuses[0];
  EXPECT_TRUE(absl::IsCancelled(run.statuses[1])) << run.statuses[1];
  EXPECT_EQ(run.steps[0].size(), 4u);
  EXPECT_EQ(run.steps[1].size(), 4u);
}

TEST(TrainLoop, LatestSkipsACheckpointWithAFlippedBit) {
  JobSpec job = SmallJob();
  const std::string directory = absl::StrCat(testing::TempDir(), "/flipped");
  std::filesystem::remove_all(directory);
  job.mutable_checkpoint()->set_directory(directory);
  job.mutable_checkpoint()->set_every(5);
  job.mutable_training()->set_stop_after(10);
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

TEST(TrainLoop, AStopBeforeTheCheckpointIsRefused) {
  JobSpec job = SmallJob();
  const std::string directory = absl::StrCat(testing::TempDir(), "/past");
  std::filesystem::remove_all(directory);
  job.mutable_checkpoint()->set_directory(directory);
  job.mutable_training()->set_stop_after(5);
  ASSERT_TRUE(Train(job, {}).status().ok());
  job.mutable_training()->set_stop_after(4);
  const TrainingRun run = Train(job, {.resume = "latest"});
  EXPECT_TRUE(absl::IsInvalidArgument(run.status())) << run.status();
  EXPECT_TRUE(
      absl::StrContains(run.status().message(), "training.stop_after: 4, but"))
      << run.status();
}

TEST(TrainLoop, ADiskErrorFailsTheJobAndLeavesOlderCheckpoints) {
  JobSpec job = SmallJob();
  const std::string directory = absl::StrCat(testing::TempDir(), "/disk_error");
  std::filesystem::remove_all(directory);
  job.mutable_checkpoint()->set_directory(directory);
  job.mutable_checkpoint()->set_every(5);
  const TrainingRun run = Train(
      job, {.on_step = [&](int rank, const StepRecord& record,
                           const std::vector<TrainLoop*>& loops) {
        if (record.step() != 10) return;
        // The temporary directory of the next checkpoint cannot be made.
        std::ofstream(CheckpointPath(directory, 10) + ".tmp-test") << "taken";
      }});
  ASSERT_FALSE(run.status().ok());
  EXPECT_TRUE(absl::StrContains(run.status().message(), "step 10: checkpoint"))
      << run.status();
  EXPECT_TRUE(absl::StrContains(run.status().message(), "step-00000010.tmp-"))
      << run.status();
  EXPECT_EQ(run.steps[0].size(), 10u);
  const auto newest = FindNewestComplete(directory, CheckDepth::kChecksums);
  ASSERT_TRUE(newest.ok()) << newest.status();
  EXPECT_EQ(newest->step, 5);
  EXPECT_EQ(run.bytes_left, 0u);
}

TEST(TrainLoop, DivergenceIsAnErrorThatSaysWhatMayHelp) {
  JobSpec job = SmallJob();
  job.mutable_optimizer()->set_name("sgd");
  job.mutable_optimizer()->set_lr(1e4);
  job.mutable_training()->set_gradient_clipping(0);
  job.mutable_lr_scheduler()->set_warmup_steps(0);
  const TrainingRun run = Train(job, {});
  EXPECT_TRUE(absl::IsFailedPrecondition(run.status())) << run.status();
  EXPECT_TRUE(absl::StrContains(run.status().message(), "training diverged"))
      << run.status();
}

TEST(TrainLoop, AMissingTokenFileIsNamed) {
  JobSpec job = SmallJob();
  job.mutable_data()->set_tokens("/no/such/file.tokens");
  const TrainingRun run = Train(job, {});
  EXPECT_TRUE(absl::IsNotFound(run.status())) << run.status();
  EXPECT_TRUE(absl::StrContains(run.status().message(), "/no/such/file.tokens"))
      << run.status();
}

}  // namespace
}  // namespace troupe
