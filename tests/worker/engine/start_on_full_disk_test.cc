// Attempts that begin while the disk of their checkpoints is full.
#include <atomic>
#include <filesystem>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/small_job.h"
#include "tests/storage/disk/power_loss.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

JobSpec JobIn(const TempDir& dir) {
  JobSpec job = SmallJob();
  job.mutable_training()->set_micro_batch_size(4);
  job.mutable_parallelism()->set_data(2);
  job.mutable_checkpoint()->set_directory(dir.File("checkpoints"));
  job.mutable_checkpoint()->set_every(5);
  return job;
}

// As one that runs does: it trains, and saves when there is room.
TEST(StartOnFullDisk, AJobThatRanBeforeGoesOn) {
  for (const bool background : {false, true}) {
    const TempDir dir;
    JobSpec job = JobIn(dir);
    job.mutable_checkpoint()->set_background(background);
    std::optional<FullDisk> full(dir.path());
    std::atomic<int> failures = 0;
    const TrainingRun run = Train(
        job, {.ranks = 2,
              .ran_before = true,
              .on_unwritten = [&](int, int64_t, const std::string& error) {
                EXPECT_TRUE(absl::StrContains(error, "ENOSPC")) << error;
                if (++failures == 4) full.reset();
              }});
    ASSERT_TRUE(run.status().ok()) << run.status();
    ASSERT_EQ(run.warnings.size(), 1u);
    EXPECT_TRUE(absl::StartsWith(
        run.warnings[0],
        absl::StrCat("goes on without checkpoints until there is room for "
                     "them: checkpoint.directory: ",
                     job.checkpoint().directory())))
        << run.warnings[0];
    EXPECT_EQ(run.steps[0].size(), 20u);
    EXPECT_GE(failures, 4);
    EXPECT_EQ(run.checkpoints.back().step(), 20);
    const auto newest = FindNewestComplete(job.checkpoint().directory(),
                                           CheckDepth::kChecksums);
    ASSERT_TRUE(newest.ok()) << newest.status();
    EXPECT_EQ(newest->step, 20);
    EXPECT_EQ(run.bytes_left, 0u);
  }
}

// It has nothing to lose.
TEST(StartOnFullDisk, AJobThatBeginsIsRefused) {
  const TempDir dir;
  const JobSpec job = JobIn(dir);
  const FullDisk full(dir.path());
  const TrainingRun run = Train(job, {.ranks = 2});
  EXPECT_TRUE(Fails(run.status(), absl::StatusCode::kResourceExhausted,
                    {"checkpoint.directory: ", "ENOSPC"}));
  EXPECT_TRUE(std::filesystem::is_empty(job.checkpoint().directory()));
}

}  // namespace
}  // namespace troupe
