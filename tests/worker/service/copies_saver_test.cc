#include "worker/service/copies_saver.h"

#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/checkpoint/commit.h"
#include "tests/worker/engine/kept_ranks.h"
#include "worker/engine/save_copies.h"

namespace troupe {
namespace {

class CopiesSaverTest : public testing::Test {
 protected:
  CopiesSaverTest() : directory_(testing::TempDir() + "/copies_saver") {
    std::filesystem::remove_all(directory_);
  }

  std::unique_ptr<CopiesSaver> Start(int rank, const SaveCopies& request) {
    return std::make_unique<CopiesSaver>(request, ranks_.kept(rank),
                                         ranks_.Resources(rank),
                                         [this](WorkerMessage message) {
                                           absl::MutexLock lock(&mutex_);
                                           said_.push_back(std::move(message));
                                           return absl::OkStatus();
                                         });
  }
  SaveCopies OwnCopy(int rank, int64_t step = KeptRanks::kStep) const {
    SaveCopies request = KeptRanks::Request(step);
    request.mutable_ref()->set_rank(rank);
    *request.add_copies() = ranks_.CopyOf(rank, /*peer=*/false);
    return request;
  }
  CopiesSaved NextAnswer() {
    absl::MutexLock lock(&mutex_);
    const auto is_there = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !said_.empty();
    };
    mutex_.Await(absl::Condition(&is_there));
    WorkerMessage message = std::move(said_.front());
    said_.pop_front();
    return message.copies_saved();
  }
  bool IsBegun() const {
    return std::filesystem::exists(TemporaryDirectory(
        CopiesAttempt(ranks_.plan(0).job(), KeptRanks::Request())));
  }
  bool IsThere() const {
    return std::filesystem::exists(
        CheckpointPath(directory_, KeptRanks::kStep));
  }

  const std::string directory_;
  KeptRanks ranks_{directory_, /*zero=*/3};
  absl::Mutex mutex_;
  std::deque<WorkerMessage> said_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(CopiesSaverTest, AllWriteAndOneCommits) {
  SaveCopies commit = KeptRanks::Request();
  *commit.mutable_commits() = ranks_.plan(0);
  for (int rank = 0; rank < 2; ++rank) {
    const auto saver = Start(rank, OwnCopy(rank));
    const CopiesSaved answer = NextAnswer();
    EXPECT_EQ(answer.error(), "");
    EXPECT_EQ(answer.token(), commit.token());
    EXPECT_EQ(answer.ref().rank(), rank);
    EXPECT_FALSE(answer.has_checkpoint());
    ASSERT_EQ(answer.shard_records_size(), 1);
    *commit.add_shard_records() = answer.shard_records(0);
    saver->Keep();
  }
  EXPECT_TRUE(IsBegun());
  EXPECT_FALSE(IsThere());
  const auto saver = Start(0, commit);
  const CopiesSaved answer = NextAnswer();
  EXPECT_EQ(answer.error(), "");
  EXPECT_EQ(answer.checkpoint().step(), KeptRanks::kStep);
  EXPECT_TRUE(IsThere());
  EXPECT_FALSE(IsBegun());
}

TEST_F(CopiesSaverTest, WhatIsNotCommittedIsGivenUp) {
  auto saver = Start(0, OwnCopy(0));
  EXPECT_EQ(NextAnswer().error(), "");
  EXPECT_TRUE(IsBegun());
  saver = nullptr;
  EXPECT_FALSE(IsBegun());
}

TEST_F(CopiesSaverTest, WhatIsCommittedIsNot) {
  SaveCopies commit = KeptRanks::Request();
  *commit.mutable_commits() = ranks_.plan(0);
  auto first = Start(0, OwnCopy(0));
  *commit.add_shard_records() = NextAnswer().shard_records(0);
  const auto second = Start(1, OwnCopy(1));
  *commit.add_shard_records() = NextAnswer().shard_records(0);
  const auto committer = Start(0, commit);
  EXPECT_EQ(NextAnswer().error(), "");
  first = nullptr;  // was never told to keep it: it is not its own any more
  EXPECT_TRUE(IsThere());
}

TEST_F(CopiesSaverTest, SaysWhatItHasNotAndLeavesNothing) {
  const auto saver = Start(0, OwnCopy(0, KeptRanks::kStep + 1));
  const CopiesSaved answer = NextAnswer();
  EXPECT_EQ(answer.error(),
            "the copy of the state of rank 0 after step 7 is not in memory");
  EXPECT_TRUE(answer.fails_again());
  EXPECT_EQ(answer.shard_records_size(), 0);
  EXPECT_FALSE(IsBegun());
}

TEST_F(CopiesSaverTest, SaysWhetherADiskIsInTheWay) {
  std::ofstream(directory_) << "a file";
  const auto saver = Start(0, OwnCopy(0));
  const CopiesSaved answer = NextAnswer();
  EXPECT_NE(answer.error(), "");
  EXPECT_FALSE(answer.fails_again()) << answer.error();
}

TEST_F(CopiesSaverTest, ACheckpointOfTooFewIsRefusedAndLeavesNothing) {
  const auto saver = Start(0, OwnCopy(0));
  SaveCopies commit = KeptRanks::Request();
  *commit.mutable_commits() = ranks_.plan(0);
  *commit.add_shard_records() = NextAnswer().shard_records(0);
  saver->Keep();
  const auto committer = Start(0, commit);
  EXPECT_NE(NextAnswer().error(), "");
  EXPECT_FALSE(IsThere());
  EXPECT_FALSE(IsBegun()) << "it is a whole copy, one more for each try";
}

// As it does for a commit of the same step that nobody heard of.
TEST_F(CopiesSaverTest, WhatACommitReplacedGoesWithItsSaver) {
  const std::string there = CheckpointPath(directory_, KeptRanks::kStep);
  std::filesystem::create_directories(there + "/of-an-earlier-time");
  SaveCopies commit = KeptRanks::Request();
  *commit.mutable_commits() = ranks_.plan(0);
  for (int rank = 0; rank < 2; ++rank) {
    const auto saver = Start(rank, OwnCopy(rank));
    *commit.add_shard_records() = NextAnswer().shard_records(0);
    saver->Keep();
  }
  auto committer = Start(0, commit);
  EXPECT_EQ(NextAnswer().error(), "");
  EXPECT_TRUE(IsBegun());
  committer = nullptr;
  EXPECT_FALSE(IsBegun());
  EXPECT_TRUE(std::filesystem::exists(there + "/manifest.json"));
}

}  // namespace
}  // namespace troupe
