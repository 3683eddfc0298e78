#include "worker/engine/checkpoint_holder.h"

#include "gtest/gtest.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

constexpr char kRun[] = "3f2a9c1e5b7d8046";
constexpr char kOther[] = "0000000000000001";

RankRef JobOne(int attempt) {
  RankRef ref;
  ref.set_job(1);
  ref.set_attempt(attempt);
  return ref;
}

CheckpointFolderOptions Attempt(const std::string& directory, int attempt,
                                const std::string& run_id) {
  JobSpec job;
  job.set_name("gpt2");
  job.mutable_checkpoint()->set_directory(directory);
  return FolderOptionsOf(job, {.token = AttemptToken(JobOne(attempt), run_id),
                               .job_token = JobToken(JobOne(attempt), run_id),
                               .ran_before = attempt > 1});
}

// A process that was stopped, and holds the directory still.
TEST(CheckpointHolder, AnAttemptSupersedesThoseBeforeItOfTheSameRun) {
  TempDir dir;
  const auto first = CheckpointFolder::Open(Attempt(dir.path(), 1, kRun));
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = CheckpointFolder::Open(Attempt(dir.path(), 2, kRun));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_FALSE((*first)->CheckHeld().ok());
  EXPECT_TRUE((*second)->CheckHeld().ok());
}

// Of two clusters, each of which calls its first job 1.
TEST(CheckpointHolder, ALivingLockOfAnotherRunIsNeverTaken) {
  TempDir dir;
  const auto held = CheckpointFolder::Open(Attempt(dir.path(), 1, kRun));
  ASSERT_TRUE(held.ok()) << held.status();
  for (const int attempt : {1, 2}) {
    EXPECT_TRUE(Fails(
        CheckpointFolder::Open(Attempt(dir.path(), attempt, kOther)).status(),
        absl::StatusCode::kFailedPrecondition,
        {"job gpt2 (job-1-3f2a9c1e5b7d8046-1)", "writes its checkpoints there",
         "give another directory"}));
  }
  EXPECT_TRUE((*held)->CheckHeld().ok());
}

}  // namespace
}  // namespace troupe
