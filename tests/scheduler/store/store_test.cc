#include "scheduler/store/store.h"

#include <filesystem>

#include "gtest/gtest.h"

namespace troupe {
namespace {

std::string FreshDirectory(const char* name) {
  const std::string directory = testing::TempDir() + "/" + name;
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  return directory;
}

std::shared_ptr<const JobRow> RowOf(int64_t id, JobState state) {
  auto row = std::make_shared<JobRow>();
  row->spec.set_name("name");
  row->status.set_id(id);
  row->status.set_state(state);
  row->status.add_checkpoints()->set_path("/c");
  row->attempt = 2;
  row->cancelled = true;
  auto plan = std::make_shared<Plan>();
  plan->set_fingerprint("f");
  row->plan = plan;
  return row;
}

StoreBatch BatchOf(int64_t id, JobState state, int steps) {
  StoreBatch batch;
  batch.jobs[JobId(id)] = RowOf(id, state);
  for (int step = 1; step <= steps; ++step) {
    PersistStep& row = batch.steps.emplace_back();
    row.job = JobId(id);
    row.step.set_step(step);
    row.step.set_loss(step * 0.5);
  }
  for (int i = 0; i < 2; ++i) {
    PersistEvent& row = batch.events.emplace_back();
    row.job = JobId(id);
    row.index = i;
    row.event.set_text(i == 0 ? "first" : "second");
    row.event.set_unix_ms(7);
  }
  return batch;
}

TEST(Store, GivesBackWhatWasWritten) {
  const std::string directory = FreshDirectory("store");
  {
    auto store = Store::Open(directory);
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE((*store)->Write(BatchOf(1, QUEUED, 0)).ok());
    ASSERT_TRUE((*store)->Write(BatchOf(1, RUNNING, 3)).ok());
    ASSERT_TRUE((*store)->Write(BatchOf(2, QUEUED, 0)).ok());
    ASSERT_TRUE((*store)->Write({}).ok());
  }
  auto store = Store::Open(directory);
  const auto jobs = (*store)->Load({});
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 2u);
  const StoredJob& job = (*jobs)[0];
  EXPECT_EQ(job.row.status.id(), 1);
  EXPECT_EQ(job.row.status.state(), RUNNING);
  EXPECT_EQ(job.row.status.checkpoints(0).path(), "/c");
  EXPECT_EQ(job.row.spec.name(), "name");
  EXPECT_EQ(job.row.plan->fingerprint(), "f");
  EXPECT_EQ(job.row.attempt, 2);
  EXPECT_TRUE(job.row.cancelled);
  ASSERT_EQ(job.steps.size(), 3u);
  EXPECT_EQ(job.steps[2].loss(), 1.5);
  ASSERT_EQ(job.events.size(), 2u);
  EXPECT_EQ(job.events[1].text(), "second");
}

TEST(Store, LoadsTheNewestWithinTheLimits) {
  auto store = Store::Open(FreshDirectory("store-limits"));
  ASSERT_TRUE((*store)->Write(BatchOf(1, QUEUED, 0)).ok());
  for (int id = 2; id <= 10; ++id) {
    ASSERT_TRUE((*store)->Write(BatchOf(id, SUCCEEDED, 10)).ok());
  }
  Limits limits;
  limits.ended_jobs_kept = 3;
  limits.steps_per_job_max = 4;
  limits.steps_kept_max = 6;
  const auto jobs = (*store)->Load(limits);
  ASSERT_EQ(jobs->size(), 4u);
  EXPECT_EQ((*jobs)[0].row.status.id(), 1) << "it still waits";
  EXPECT_EQ((*jobs)[1].row.status.id(), 8);
  ASSERT_EQ((*jobs)[3].steps.size(), 4u);
  EXPECT_EQ((*jobs)[3].steps[0].step(), 7);
  EXPECT_EQ((*jobs)[2].steps.size(), 2u);
  EXPECT_EQ((*jobs)[1].steps.size(), 0u);
}

TEST(Store, RefusesWhatANewerBuildWrote) {
  const std::string directory = FreshDirectory("store-newer");
  ASSERT_TRUE(Store::Open(directory).ok());
  {
    auto database = Database::Open(directory + "/troupe.db");
    ASSERT_TRUE(database->Execute("PRAGMA user_version = 99").ok());
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(Store::Open(directory).status()));
}

}  // namespace
}  // namespace troupe
