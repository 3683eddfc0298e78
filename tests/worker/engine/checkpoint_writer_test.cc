#include "worker/engine/checkpoint_writer.h"

#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/checkpoint/manifest.h"
#include "storage/checkpoint/tensor_reader.h"
#include "storage/engine/make_engine.h"
#include "tests/equivalence/small_job.h"
#include "tests/worker/rank/small_rank.h"
#include "worker/engine/checkpoint_saver.h"

namespace troupe {
namespace {

// Gives shards back as they come: a job of one rank.
class OneRank final : public RankListener {
 public:
  absl::Status OnReady(int64_t) override { return absl::OkStatus(); }
  absl::Status OnStep(const StepRecord&, absl::Span<const double>,
                      const RankTimeline*) override {
    return absl::OkStatus();
  }
  absl::Status OnShardWritten(const WrittenShard& shard) override {
    shards = {shard.record};
    return absl::OkStatus();
  }
  void OnNotice(const std::string& notice) override {
    notices.push_back(notice);
  }
  absl::Status OnUnwritten(int64_t, const std::string& error) override {
    unwritten.push_back(error);
    return absl::OkStatus();
  }
  absl::StatusOr<absl::optional<std::vector<ShardRecord>>> AwaitShards(
      int64_t) override {
    if (!refusal.ok()) return refusal;
    if (!unwritten.empty()) return absl::nullopt;
    return shards;
  }
  absl::Status OnCommitted(const CheckpointRecord& checkpoint) override {
    committed.push_back(checkpoint);
    return absl::OkStatus();
  }
  // What may be gone on from when the job's checkpoint becomes another one.
  absl::StatusOr<CheckpointEnd> AwaitEnd(int64_t step) override {
    if (!unwritten.empty()) return CheckpointEnd{.given_up = unwritten.back()};
    EXPECT_TRUE(!committed.empty() && committed.back().step() == step);
    const std::filesystem::path path = committed.back().path();
    there.push_back(0);
    for (const auto& entry :
         std::filesystem::directory_iterator(path.parent_path())) {
      there.back() += entry.is_directory();
    }
    if (!unheard.ok()) return unheard;
    return CheckpointEnd{.stored = stored};
  }

  absl::Status refusal;
  std::vector<std::string> notices;
  std::vector<std::string> unwritten;
  absl::Status unheard;  // of the commit
  bool stored = true;    // it is
  std::vector<ShardRecord> shards;
  std::vector<CheckpointRecord> committed;
  // At each commit: checkpoints, and what is left of any.
  std::vector<int> there;
};

class CheckpointWriterTest : public testing::Test {
 protected:
  CheckpointWriterTest()
      : directory_(testing::TempDir() + "/checkpoint_writer"),
        io_(MakeIoEngine({.kind = "thread_pool", .depth = 4}).value()) {
    std::filesystem::remove_all(directory_);
    JobSpec job = SmallJob();
    job.mutable_checkpoint()->set_directory(directory_);
    job.mutable_checkpoint()->set_keep(2);
    rank_ = std::make_unique<SmallRank>(
        job, SmallRankOptions{.program = Program::CHECKPOINT});
    writer_ = std::make_unique<CheckpointWriter>(
        CheckpointWriterOptions{.token = "test", .removal = &removal_},
        rank_->state(), RankDisk{*io_, disk_}, clock_, listener_);
  }

  std::vector<int64_t> Kept() const {
    std::vector<int64_t> steps;
    const auto kept = ListCheckpoints(directory_);
    EXPECT_TRUE(kept.ok()) << kept.status();
    if (!kept.ok()) return steps;
    for (const CheckpointEntry& entry : *kept) steps.push_back(entry.step);
    return steps;
  }

  // When nothing more is being removed.
  int DirectoriesLeft() {
    EXPECT_TRUE(removal_.AwaitIdle().ok());
    int directories = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      directories += entry.is_directory();
    }
    return directories;
  }

  Snapshot Taken(int64_t step) {
    return {.step = step,
            .samples_consumed = step * 8,
            .tensors = rank_->state().snapshot};
  }

  absl::Status Write(int64_t step) {
    rank_->state().snapshot.clear();
    const absl::Status collected = rank_->RunAll("K");
    return collected.ok() ? writer_->Write(Taken(step)).status() : collected;
  }

  const std::string directory_;
  const RealClock clock_;
  DiskLog disk_{clock_};
  const std::unique_ptr<IoEngine> io_;
  OneRank listener_;
  BackgroundWriter removal_;
  std::unique_ptr<SmallRank> rank_;
  std::unique_ptr<CheckpointWriter> writer_;
};

TEST_F(CheckpointWriterTest, WritesWhatAnyPlanCanRead) {
  const absl::Status written = Write(7);
  ASSERT_TRUE(written.ok()) << written;
  ASSERT_EQ(listener_.committed.size(), 1u);
  EXPECT_EQ(listener_.committed[0].step(), 7);
  EXPECT_EQ(listener_.committed[0].path(), CheckpointPath(directory_, 7));

  const auto reader = TensorReader::Open(CheckpointPath(directory_, 7));
  ASSERT_TRUE(reader.ok()) << reader.status();
  const Manifest& manifest = (*reader)->manifest();
  EXPECT_EQ(manifest.step, 7);
  EXPECT_EQ(manifest.samples_consumed, 56u);
  EXPECT_EQ(manifest.seed, 3u);
  EXPECT_EQ(manifest.tokenizer, "bytes");
  EXPECT_EQ(manifest.plan_fingerprint, rank_->state().plan->fingerprint());
  EXPECT_NE(manifest.job.find("\"hidden_size\":24"), std::string::npos);
  std::vector<float> table(61 * 24);
  ASSERT_TRUE((*reader)
                  ->ReadRange("transformer.wte.weight", StoredDType::kF32,
                              {.count = 61 * 24}, table.data())
                  .ok());
  const float* weights = rank_->Memory<float>(Buffer::PARAMETERS, 0);
  for (int i = 0; i < 61 * 24; ++i) EXPECT_EQ(table[i], weights[i]);
}

TEST_F(CheckpointWriterTest, KeepsTheNewestFew) {
  for (int step = 1; step <= 4; ++step) ASSERT_TRUE(Write(step).ok());
  EXPECT_EQ(Kept(), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(DirectoriesLeft(), 2);
  // The third one is known to be there before the first one goes.
  EXPECT_EQ(listener_.there, (std::vector<int>{1, 2, 3, 3}));
}

// A job whose rank is lost now goes on from what it has heard of.
TEST_F(CheckpointWriterTest, OldOnesStayWhereNobodyHeardOfTheNewOne) {
  for (int step = 1; step <= 2; ++step) ASSERT_TRUE(Write(step).ok());
  listener_.unheard = absl::CancelledError("the scheduler is gone");
  EXPECT_EQ(Write(3), listener_.unheard);
  EXPECT_EQ(Kept(), (std::vector<int64_t>{1, 2, 3}));
}

// A scheduler whose disk is full has heard of them, and the next one will not.
TEST_F(CheckpointWriterTest, OldOnesStayUntilANewOneIsStored) {
  for (int step = 1; step <= 2; ++step) ASSERT_TRUE(Write(step).ok());
  listener_.stored = false;
  for (int step = 3; step <= 6; ++step) ASSERT_TRUE(Write(step).ok());
  EXPECT_EQ(Kept(), (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(DirectoriesLeft(), 6);
  listener_.stored = true;
  ASSERT_TRUE(Write(7).ok());
  EXPECT_EQ(Kept(), (std::vector<int64_t>{6, 7}));
  EXPECT_EQ(DirectoriesLeft(), 2);
}

// The job never goes on from those, and `latest` would.
TEST_F(CheckpointWriterTest, WhatAnEarlierRunLeftGoesEvenThen) {
  for (int step = 7; step <= 9; ++step) ASSERT_TRUE(Write(step).ok());
  auto folder = CheckpointFolder::Open({.directory = directory_,
                                        .holder = "a test",
                                        .starts_anew = true,
                                        .overwrite = true});
  ASSERT_TRUE(folder.ok()) << folder.status();
  writer_ = std::make_unique<CheckpointWriter>(
      CheckpointWriterOptions{
          .token = "test", .folder = folder->get(), .removal = &removal_},
      rank_->state(), RankDisk{*io_, disk_}, clock_, listener_);
  listener_.stored = false;
  for (int step = 1; step <= 3; ++step) ASSERT_TRUE(Write(step).ok());
  EXPECT_EQ(Kept(), (std::vector<int64_t>{1, 2, 3}));
}

// The job has saved what it was to save, however its disk treats what an
// earlier run left.
class OverwriteTest : public CheckpointWriterTest {
 protected:
  OverwriteTest() {
    for (int step = 7; step <= 9; ++step) EXPECT_TRUE(Write(step).ok());
    EXPECT_TRUE(removal_.AwaitIdle().ok());
    folder_ = CheckpointFolder::Open({.directory = directory_,
                                      .holder = "a test",
                                      .starts_anew = true,
                                      .overwrite = true})
                  .value();
    in_the_way_ = CheckpointPath(directory_, 9) + ".tmp-removed";
    std::ofstream(in_the_way_) << "in the way";
  }

  absl::Status Save(int64_t step, bool last,
                    absl::Duration pause_max = absl::Milliseconds(8)) {
    CheckpointSaver saver(
        {.token = "test",
         .folder = folder_.get(),
         .pauses = {.first = absl::Milliseconds(1), .max = pause_max},
         .data_unchecked = [] { return false; },
         .gives_up = gives_up_},
        rank_->state(), RankDisk{*io_, disk_}, clock_, listener_);
    rank_->state().snapshot.clear();
    const absl::Status collected = rank_->RunAll("K");
    if (!collected.ok()) return collected;
    return saver.Save(Taken(step), last);
  }

  std::unique_ptr<CheckpointFolder> folder_;
  std::string in_the_way_;
  absl::Notification gives_up_;
};

TEST_F(OverwriteTest, TheRunGoesOnAndTheNextCheckpointTriesAgain) {
  EXPECT_TRUE(Save(1, /*last=*/false).ok());
  EXPECT_EQ(Kept(), (std::vector<int64_t>{1, 9}));
  ASSERT_EQ(listener_.notices.size(), 1u);
  for (const std::string& said :
       {CheckpointPath(directory_, 1) + " is written",
        std::string("checkpoint.overwrite"), CheckpointPath(directory_, 9),
        std::string("tried again")}) {
    EXPECT_NE(listener_.notices[0].find(said), std::string::npos)
        << listener_.notices[0];
  }
  EXPECT_TRUE(Save(2, /*last=*/false).ok());
  EXPECT_EQ(Kept(), (std::vector<int64_t>{1, 2, 9}));
  EXPECT_EQ(listener_.notices.size(), 1u) << "the same is no news";
  std::filesystem::remove(in_the_way_);
  EXPECT_TRUE(Save(3, /*last=*/false).ok());
  EXPECT_EQ(Kept(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(listener_.notices.size(), 1u);
}

TEST_F(OverwriteTest, TheLastCheckpointTriesForAWhileAndTheRunEndsWell) {
  EXPECT_TRUE(Save(1, /*last=*/true).ok());
  EXPECT_EQ(Kept(), (std::vector<int64_t>{1, 9}));
  EXPECT_TRUE(folder_->has_left());
}

TEST_F(OverwriteTest, TheLastCheckpointTriesAgain) {
  std::thread disk([&] {
    while (!std::filesystem::exists(CheckpointPath(directory_, 1))) {
      std::this_thread::yield();
    }
    std::filesystem::remove(in_the_way_);
  });
  EXPECT_TRUE(Save(1, /*last=*/true, absl::Minutes(1)).ok());
  disk.join();
  EXPECT_EQ(Kept(), (std::vector<int64_t>{1}));
}

TEST_F(OverwriteTest, NobodyWaitsForThatWhoWasAskedToEnd) {
  gives_up_.Notify();
  EXPECT_TRUE(Save(1, /*last=*/true).ok());
  EXPECT_TRUE(folder_->has_left());
}

TEST_F(CheckpointWriterTest, WhatItReplacesGoes) {
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(Write(1).ok());
  EXPECT_EQ(DirectoriesLeft(), 1);
}

TEST_F(CheckpointWriterTest, SaysWhetherTheTokensWereChecked) {
  ASSERT_TRUE(Write(1).ok());
  writer_ = std::make_unique<CheckpointWriter>(
      CheckpointWriterOptions{
          .token = "test", .removal = &removal_, .data_unchecked = true},
      rank_->state(), RankDisk{*io_, disk_}, clock_, listener_);
  ASSERT_TRUE(Write(2).ok());
  for (const int step : {1, 2}) {
    const auto manifest = ReadManifest(CheckpointPath(directory_, step));
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    EXPECT_EQ(manifest->data_unchecked, step == 2);
  }
}

TEST_F(CheckpointWriterTest, WithoutAllShardsThereIsNoCheckpoint) {
  ASSERT_TRUE(Write(1).ok());
  listener_.refusal = absl::CancelledError("a rank is gone");
  EXPECT_EQ(Write(2), absl::CancelledError("a rank is gone"));
  const auto kept = ListCheckpoints(directory_);
  ASSERT_TRUE(kept.ok());
  EXPECT_EQ(kept->size(), 1u);
  EXPECT_FALSE(
      std::filesystem::exists(CheckpointPath(directory_, 2) + ".tmp-test"));
}

TEST_F(CheckpointWriterTest, ShardsThatDoNotTileAreRefused) {
  rank_->state().snapshot.clear();
  ASSERT_TRUE(rank_->RunAll("K").ok());
  ASSERT_TRUE(writer_->Write(Taken(1)).ok());
  // Twice the same shard.
  rank_->state().snapshot.push_back(rank_->state().snapshot[0]);
  EXPECT_FALSE(writer_->Write(Taken(2)).ok());
  EXPECT_TRUE(FindNewestComplete(directory_, CheckDepth::kChecksums)->step ==
              1);
}

}  // namespace
}  // namespace troupe
