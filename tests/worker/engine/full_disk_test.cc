// Checkpoints that the disk does not take: they cost no training, and the last
// one is not lost (worker/engine/checkpoint_saver.h).
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/engine/make_engine.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/small_job.h"
#include "tests/storage/engine/failing_engine.h"
#include "worker/engine/train_loop.h"

namespace troupe {
namespace {

JobSpec CheckpointedJob(const std::string& name, bool background) {
  JobSpec job = SmallJob();
  const std::string directory = absl::StrCat(testing::TempDir(), "/", name);
  std::filesystem::remove_all(directory);
  job.mutable_checkpoint()->set_directory(directory);
  job.mutable_checkpoint()->set_every(5);
  job.mutable_checkpoint()->set_background(background);
  return job;
}

// The second of two ranks, whose disk is full when a test says so.
struct DiskOfRankOne {
  std::shared_ptr<DiskFailure> failure = std::make_shared<DiskFailure>();

  DiskOfRankOne() { failure->error = ENOSPC; }
  std::function<std::unique_ptr<IoEngine>(int)> NewIo() const {
    return [failure = failure](int rank) -> std::unique_ptr<IoEngine> {
      if (rank == 1) return std::make_unique<FailingEngine>(failure);
      return MakeIoEngine({.kind = "thread_pool", .depth = 4}).value();
    };
  }
};

JobSpec OnTwoRanks(JobSpec job) {
  job.mutable_training()->set_micro_batch_size(4);
  job.mutable_parallelism()->set_data(2);
  return job;
}

std::vector<int64_t> StepsOf(const std::vector<CheckpointRecord>& checkpoints) {
  std::vector<int64_t> steps;
  for (const CheckpointRecord& each : checkpoints) steps.push_back(each.step());
  return steps;
}

TEST(FullDisk, ADiskThatIsFullForAMomentCostsNoTraining) {
  const TrainingRun plain = Train(OnTwoRanks(SmallJob()), {.ranks = 2});
  for (const bool background : {false, true}) {
    const JobSpec job = OnTwoRanks(CheckpointedJob("full", background));
    const DiskOfRankOne disk;
    disk.failure->left = 0;  // of the checkpoint of step 5
    std::string cause;
    const TrainingRun run =
        Train(job, {.ranks = 2,
                    .new_io = disk.NewIo(),
                    .on_unwritten =
                        [&](int rank, int64_t step, const std::string& error) {
                          EXPECT_EQ(rank, 1);
                          EXPECT_EQ(step, 5);
                          cause = error;
                        },
                    .save_pauses = {.first = absl::ZeroDuration(),
                                    .max = absl::ZeroDuration()}});
    ASSERT_TRUE(run.status().ok()) << run.status();
    EXPECT_TRUE(absl::StrContains(cause, "ENOSPC")) << cause;
    for (size_t i = 0; i < 20; ++i) {
      EXPECT_EQ(run.steps[0][i].loss(), plain.steps[0][i].loss());
    }
    // Not only when the next one would be due.
    const std::vector<int64_t> saved = StepsOf(run.checkpoints);
    ASSERT_GE(saved.size(), background ? 3u : 4u);
    EXPECT_GT(saved[0], 5);
    if (!background) {
      EXPECT_LT(saved[0], 10);
    }
    EXPECT_EQ(saved.back(), 20);
    EXPECT_TRUE(
        FindNewestComplete(job.checkpoint().directory(), CheckDepth::kChecksums)
            .ok());
    EXPECT_EQ(run.bytes_left, 0u);
  }
}

// The temporary directory of a checkpoint cannot be made.
TEST(FullDisk, ADiskErrorLeavesOlderCheckpoints) {
  for (const bool background : {false, true}) {
    const JobSpec job = CheckpointedJob("disk_error", background);
    const std::string& directory = job.checkpoint().directory();
    std::string cause;
    const TrainingRun run = Train(
        job, {.on_step =
                  [&](int, const StepRecord& record,
                      const std::vector<TrainLoop*>&) {
                    if (record.step() != 10) return;
                    std::ofstream(CheckpointPath(directory, 10) + ".tmp-test")
                        << "taken";
                  },
              .on_unwritten =
                  [&](int, int64_t step, const std::string& error) {
                    cause = error;
                    const auto newest =
                        FindNewestComplete(directory, CheckDepth::kChecksums);
                    EXPECT_TRUE(newest.ok() && newest->step == 5);
                  }});
    EXPECT_TRUE(run.status().ok()) << run.status();
    EXPECT_TRUE(absl::StrContains(cause, "step-00000010.tmp-")) << cause;
    EXPECT_EQ(run.steps[0].size(), 20u);
    EXPECT_EQ(run.checkpoints.back().step(), 20);
    EXPECT_EQ(run.bytes_left, 0u);
  }
}

TEST(FullDisk, TheLastStateStaysInMemoryUntilItIsSaved) {
  for (const bool background : {false, true}) {
    const JobSpec job = OnTwoRanks(CheckpointedJob("full_end", background));
    const DiskOfRankOne disk;
    std::atomic<int> failures = 0;
    const TrainingRun run = Train(
        job, {.ranks = 2,
              .new_io = disk.NewIo(),
              .on_step =
                  [&](int rank, const StepRecord& record,
                      const std::vector<TrainLoop*>&) {
                    if (rank == 1 && record.step() == 20)
                      disk.failure->lasts = true;
                  },
              .on_unwritten =
                  [&](int rank, int64_t step, const std::string& error) {
                    EXPECT_EQ(rank, 1);
                    EXPECT_TRUE(absl::StrContains(error, "ENOSPC")) << error;
                    if (++failures == 5) disk.failure->lasts = false;
                  }});
    ASSERT_TRUE(run.status().ok()) << run.status();
    EXPECT_EQ(failures, 5);
    EXPECT_EQ(run.checkpoints.back().step(), 20);
    const absl::Status whole =
        CheckCheckpoint(CheckpointPath(job.checkpoint().directory(), 20),
                        CheckDepth::kChecksums)
            .status();
    EXPECT_TRUE(whole.ok()) << whole;
  }
}

// It would fail again, until somebody cancels.
TEST(FullDisk, WhatIsNotOfTheDiskFailsTheRun) {
  for (const bool background : {false, true}) {
    JobSpec job = CheckpointedJob("broken_device", background);
    job.mutable_checkpoint()->set_every(0);  // only the last one
    const auto failure = std::make_shared<DiskFailure>();
    failure->other = absl::InternalError("cudaMemcpyAsync: the GPU is gone");
    failure->lasts = true;
    const TrainingRun run =
        Train(job, {.new_io = [failure](int) -> std::unique_ptr<IoEngine> {
                      return std::make_unique<FailingEngine>(failure);
                    },
                    .on_unwritten =
                        [&](int, int64_t step, const std::string& error) {
                          ADD_FAILURE() << step << " is tried again: " << error;
                          failure->lasts = false;
                        }});
    EXPECT_TRUE(absl::EndsWith(
        run.status().message(),
        "checkpoint of step 20: cudaMemcpyAsync: the GPU is gone"))
        << run.status();
    EXPECT_EQ(run.bytes_left, 0u);
  }
}

TEST(FullDisk, WhatCannotBeSavedIsGivenUpWhenSomebodyCancels) {
  for (const bool background : {false, true}) {
    const JobSpec job = OnTwoRanks(CheckpointedJob("given_up", background));
    const DiskOfRankOne disk;
    std::vector<TrainLoop*> all;
    const TrainingRun run =
        Train(job, {.ranks = 2,
                    .new_io = disk.NewIo(),
                    .on_step =
                        [&](int rank, const StepRecord& record,
                            const std::vector<TrainLoop*>& loops) {
                          if (rank != 1 || record.step() != 20) return;
                          all = loops;
                          disk.failure->lasts = true;
                        },
                    .on_unwritten =
                        [&](int, int64_t, const std::string&) {
                          for (TrainLoop* loop : all) loop->RequestStop();
                        }});
    for (const absl::Status& status : run.statuses) {
      EXPECT_TRUE(absl::IsCancelled(status)) << status;
    }
    const auto kept = ListCheckpoints(job.checkpoint().directory());
    ASSERT_TRUE(kept.ok() && !kept->empty());
    EXPECT_LT(kept->back().step, 20) << "and nothing is left of the last";
    EXPECT_FALSE(std::filesystem::exists(
        CheckpointPath(job.checkpoint().directory(), 20) + ".tmp-test"));
    EXPECT_EQ(run.bytes_left, 0u);
  }
}

}  // namespace
}  // namespace troupe
