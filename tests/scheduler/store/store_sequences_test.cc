// Jobs that say the loss of each sequence by itself, in the store.
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "scheduler/store/store.h"

namespace troupe {
namespace {

std::string NewDirectory(const std::string& name) {
  const std::string directory = testing::TempDir() + "/" + name;
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  return directory;
}

// Each of the 10 steps says the losses of 64 sequences.
StoreBatch BatchOfSequences(int64_t id) {
  auto job = std::make_shared<JobRow>();
  job->status.set_id(id);
  job->status.set_state(SUCCEEDED);
  StoreBatch batch;
  batch.jobs[JobId(id)] = std::move(job);
  batch.events.push_back({.job = JobId(id), .index = 0, .event = JobEvent()});
  for (int step = 1; step <= 10; ++step) {
    PersistStep& row = batch.steps.emplace_back();
    row.job = JobId(id);
    row.step.set_step(step);
    row.step.set_loss(step * 0.5);
    for (int i = 0; i < 64; ++i) {
      row.step.mutable_sequence_losses()->add_losses(0.5);
    }
  }
  return batch;
}

TEST(StoreOfSequences, StepsOfManySequencesTakeTheRoomOfSeveral) {
  auto store = Store::Open(NewDirectory("store-sequences"));
  for (int id = 1; id <= 3; ++id) {
    ASSERT_TRUE((*store)->Write(BatchOfSequences(id)).ok());
  }
  Limits limits;
  limits.steps_kept_max = 40;  // each of them weighs 3
  const auto jobs = (*store)->Load(limits);
  ASSERT_EQ(jobs->jobs.size(), 3u);
  EXPECT_EQ(jobs->jobs[2].steps.size(), 10u) << "the newest";
  ASSERT_EQ(jobs->jobs[1].steps.size(), 3u);
  EXPECT_EQ(jobs->jobs[1].steps[0].step(), 8);
  EXPECT_EQ(jobs->jobs[0].steps.size(), 0u);
  EXPECT_EQ(jobs->jobs[0].events.size(), 1u);
}

TEST(StoreOfSequences, DropsTheLossesOfSequencesThatTheSchedulerDropped) {
  auto store = Store::Open(NewDirectory("store-drops-sequences"));
  for (int id = 1; id <= 2; ++id) {
    ASSERT_TRUE((*store)->Write(BatchOfSequences(id)).ok());
  }
  StoreBatch batch;
  batch.thinned.push_back(
      {.job = JobId(1), .before = 10, .without_sequences = true});
  ASSERT_TRUE((*store)->Write(batch).ok());
  const auto jobs = (*store)->Load({});
  ASSERT_EQ(jobs->jobs[0].steps.size(), 10u);
  for (const StepRecord& step : jobs->jobs[0].steps) {
    EXPECT_EQ(step.has_sequence_losses(), step.step() == 10) << step.step();
    EXPECT_EQ(step.loss(), step.step() * 0.5);
  }
  EXPECT_EQ(jobs->jobs[1].steps[0].sequence_losses().losses_size(), 64);
}

}  // namespace
}  // namespace troupe
