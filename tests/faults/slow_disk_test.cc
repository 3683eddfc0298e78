// Checkpoints on disks of 1 MB/s, of jobs whose steps take no time: a write
// that takes several times as long as any deadline.
#include <filesystem>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "tests/equivalence/small_job.h"
#include "tests/faults/cluster_of_runners.h"

namespace troupe {
namespace {

// A write takes longer than this; no deadline is as long.
constexpr absl::Duration kWrite = absl::Seconds(20);
Limits ShortLimits() {
  return {.hang_min = absl::Seconds(6),
          .hang_steps = 0,
          // The disks of two ranks have four seconds each in flight.
          .stop_max = absl::Seconds(12)};
}

// 24 MB of weights and moments, written after every second one of four steps.
JobSpec SavingJob(int ranks, bool background) {
  JobSpec job = SmallJob();
  job.mutable_model()->set_hidden_size(288);
  job.mutable_model()->set_num_attention_heads(4);
  TrainingSpec& training = *job.mutable_training();
  training.set_steps(4);
  training.set_global_batch_size(2);
  training.set_micro_batch_size(1);
  training.set_validate_every(0);
  job.mutable_parallelism()->set_data(ranks);
  const std::string directory =
      absl::StrCat(testing::TempDir(), "/slow_disk_checkpoints");
  std::filesystem::remove_all(directory);
  CheckpointSpec& checkpoint = *job.mutable_checkpoint();
  checkpoint.set_directory(directory);
  checkpoint.set_every(2);
  checkpoint.set_keep(1);
  checkpoint.set_background(background);
  return job;
}

// Whether nothing of a checkpoint is there.
bool HasNone(const std::string& directory) {
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (absl::StartsWith(entry.path().filename().string(), "step-")) {
      return false;
    }
  }
  return true;
}

void ExpectHealthy(const ClusterOfRunners& cluster) {
  for (const WorkerStatus& worker : cluster.Workers()) {
    EXPECT_EQ(worker.state(), WorkerStatus::IDLE)
        << worker.description().name() << ": " << worker.reason();
  }
}

class SlowDiskTest : public testing::Test {
 protected:
  void TearDown() override {
    std::filesystem::remove_all(
        absl::StrCat(testing::TempDir(), "/slow_disk_checkpoints"));
  }
};

TEST_F(SlowDiskTest, AWriteOfMinutesIsNoHang) {
  for (const bool background : {false, true}) {
    for (const int ranks : {1, 2}) {
      const JobSpec job = SavingJob(ranks, background);
      ClusterOfRunners cluster({.workers = ranks, .limits = ShortLimits()});
      const JobStatus status = cluster.Run(job);
      EXPECT_EQ(status.state(), SUCCEEDED) << status.reason();
      EXPECT_GT(cluster.elapsed(), 2 * kWrite) << "two checkpoints";
      ExpectHealthy(cluster);
      const auto newest = FindNewestComplete(job.checkpoint().directory(),
                                             CheckDepth::kChecksums);
      ASSERT_TRUE(newest.ok()) << newest.status();
      EXPECT_EQ(newest->step, 4);
    }
  }
}

TEST_F(SlowDiskTest, WhoIsSavedBeforeItsEndHasTheTimeThatItTakes) {
  JobSpec job = SavingJob(2, /*background=*/false);
  job.mutable_training()->set_steps(1'000'000);
  bool asked = false;
  ClusterOfRunners cluster(
      {.workers = 2,
       .limits = ShortLimits(),
       .each_second = [&](Cluster& cluster, JobId id, absl::Time now,
                          Actions& actions) {
         if (asked) return;
         asked = true;
         EXPECT_TRUE(cluster.SaveAndCancel(id, now, actions).ok());
       }});
  const JobStatus status = cluster.Run(job);
  EXPECT_EQ(status.state(), CANCELLED) << status.reason();
  EXPECT_TRUE(absl::StrContains(status.reason(), "; saved in "))
      << status.reason();
  EXPECT_GT(cluster.elapsed(), 2 * kWrite);
  ExpectHealthy(cluster);
}

TEST_F(SlowDiskTest, AWriteCanBeCancelled) {
  for (const bool background : {false, true}) {
    for (const bool save_first : {false, true}) {
      JobSpec job = SavingJob(2, background);
      absl::Time begun = absl::InfiniteFuture();
      absl::Time cancelled = absl::InfiniteFuture();
      absl::Time last;
      ClusterOfRunners cluster(
          {.workers = 2,
           .limits = ShortLimits(),
           .each_second = [&](Cluster& cluster, JobId id, absl::Time now,
                              Actions& actions) {
             begun = std::min(begun, now);
             last = now;
             // Its user first wants it saved, and then does not wait.
             if (save_first && now - begun < absl::Seconds(1)) {
               EXPECT_TRUE(cluster.SaveAndCancel(id, now, actions).ok());
             }
             if (now - begun < absl::Seconds(4)) return;
             cancelled = std::min(cancelled, now);
             EXPECT_TRUE(cluster.Cancel(id, now, actions).ok());
           }});
      const JobStatus status = cluster.Run(job);
      EXPECT_EQ(status.state(), CANCELLED) << status.reason();
      EXPECT_LT(cluster.elapsed(), kWrite) << "nobody waits for the write";
      ExpectHealthy(cluster);
      EXPECT_TRUE(HasNone(job.checkpoint().directory()));
    }
  }
}

}  // namespace
}  // namespace troupe
