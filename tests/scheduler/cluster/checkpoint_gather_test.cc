#include "scheduler/cluster/checkpoint_gather.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

// Each step is written once where nothing else is said: `write` is its number.
CheckpointShard ShardOf(int rank, int64_t step, int64_t write = 0) {
  CheckpointShard shard;
  shard.mutable_ref()->set_rank(rank);
  shard.set_step(step);
  shard.set_write(write == 0 ? step : write);
  shard.mutable_shard()->set_file(absl::StrCat("shard-", rank));
  return shard;
}

TEST(CheckpointGather, CommitsWhenAllShardsAreThere) {
  CheckpointGather gather(3);
  EXPECT_FALSE(gather.Add(ShardOf(2, 50)).commit.has_value());
  EXPECT_FALSE(gather.Add(ShardOf(0, 50)).commit.has_value());
  EXPECT_FALSE(gather.Add(ShardOf(0, 50)).commit.has_value()) << "counted once";
  EXPECT_FALSE(gather.Add(ShardOf(1, 40)).commit.has_value())
      << "another checkpoint";
  const auto commit = gather.Add(ShardOf(1, 50)).commit;
  ASSERT_TRUE(commit.has_value());
  EXPECT_EQ(commit->step(), 50);
  ASSERT_EQ(commit->shards_size(), 3);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(commit->shards(rank).shard().file(),
              absl::StrCat("shard-", rank));
  }
}

TEST(CheckpointGather, WhatIsHeardAgainIsPast) {
  CheckpointGather gather(1);
  EXPECT_TRUE(gather.Add(ShardOf(0, 50)).commit.has_value());
  EXPECT_FALSE(gather.Add(ShardOf(0, 50)).commit.has_value());
  EXPECT_FALSE(gather.Add(ShardOf(0, 40)).commit.has_value());
  EXPECT_TRUE(gather.Committed(50));
  EXPECT_FALSE(gather.Committed(50));
  EXPECT_FALSE(gather.Committed(40));
  EXPECT_TRUE(gather.Add(ShardOf(0, 60)).commit.has_value());
  EXPECT_TRUE(gather.Committed(60));
}

CheckpointUnwritten FailureOf(int rank, int64_t step, const std::string& error,
                              int64_t write = 0) {
  CheckpointUnwritten unwritten;
  unwritten.mutable_ref()->set_rank(rank);
  unwritten.set_step(step);
  unwritten.set_write(write == 0 ? step : write);
  unwritten.set_error(error);
  return unwritten;
}

// While a rank still writes, nobody may clean up.
TEST(CheckpointGather, GivesUpWhenAllHaveAnswered) {
  CheckpointGather gather(3);
  EXPECT_TRUE(gather.Add(FailureOf(2, 50, "ENOSPC")).unwritten.empty());
  EXPECT_TRUE(gather.Add(FailureOf(2, 50, "ENOSPC")).unwritten.empty());
  EXPECT_TRUE(gather.Add(FailureOf(0, 50, "ENOENT")).unwritten.empty());
  const GatheredCheckpoint gathered = gather.Add(ShardOf(1, 50));
  EXPECT_FALSE(gathered.commit.has_value());
  ASSERT_EQ(gathered.unwritten.size(), 2u);
  EXPECT_EQ(gathered.unwritten[0].error(), "ENOSPC") << "the first is heard";
}

TEST(CheckpointGather, ARankHasOneAnswer) {
  CheckpointGather gather(2);
  gather.Add(FailureOf(0, 50, "ENOSPC"));
  EXPECT_TRUE(gather.Add(ShardOf(0, 50)).unwritten.empty());
  EXPECT_TRUE(gather.Add(ShardOf(1, 50)).commit.has_value());
  // Whichever write it is for: it has gone on since.
  CheckpointGather other(2);
  other.Add(ShardOf(1, 50));
  other.Add(ShardOf(1, 60));
  EXPECT_TRUE(other.Add(ShardOf(0, 50)).unwritten.empty());
  EXPECT_TRUE(other.Add(ShardOf(0, 60)).commit.has_value());
}

TEST(CheckpointGather, WhatWasGivenUpIsTriedAgain) {
  CheckpointGather gather(2);
  gather.Add(ShardOf(0, 50, 1));
  EXPECT_EQ(gather.Add(FailureOf(1, 50, "ENOSPC", 1)).unwritten.size(), 1u);
  EXPECT_FALSE(gather.Add(ShardOf(1, 50, 2)).commit.has_value());
  EXPECT_TRUE(gather.Add(ShardOf(0, 50, 2)).commit.has_value());
  // Rank 0 could not commit.
  EXPECT_EQ(gather.Add(FailureOf(0, 50, "ENOSPC", 2)).unwritten.size(), 1u);
  EXPECT_FALSE(gather.Add(ShardOf(1, 50, 3)).commit.has_value());
  EXPECT_TRUE(gather.Add(ShardOf(0, 50, 3)).commit.has_value());
  EXPECT_TRUE(gather.Committed(50));
  EXPECT_TRUE(gather.Add(FailureOf(0, 50, "EIO", 3)).unwritten.empty());
}

std::vector<int> RanksOf(const GatheredCheckpoint& gathered) {
  std::vector<int> ranks;
  for (const auto& unheard : gathered.unheard) ranks.push_back(unheard.rank);
  return ranks;
}

// They have not heard it, or what they were told is lost with a scheduler.
TEST(CheckpointGather, WhatWasGivenUpIsSaidToThoseWhoAnswerAgain) {
  CheckpointGather gather(2);
  gather.Add(ShardOf(0, 50, 1));
  ASSERT_EQ(gather.Add(FailureOf(1, 50, "ENOSPC", 1)).unwritten.size(), 1u);
  EXPECT_EQ(RanksOf(gather.Add(ShardOf(0, 50, 1))), std::vector<int>{0});
  EXPECT_EQ(RanksOf(gather.Add(FailureOf(1, 50, "ENOSPC", 1))),
            std::vector<int>{1});
}

// The answers of two writes of one step are not put together.
TEST(CheckpointGather, AnAnswerCountsForItsOwnWrite) {
  CheckpointGather gather(2);
  EXPECT_FALSE(gather.Add(ShardOf(1, 50, 1)).commit.has_value());
  EXPECT_FALSE(gather.Add(ShardOf(0, 50, 2)).commit.has_value());
  EXPECT_FALSE(gather.Add(ShardOf(1, 50, 1)).commit.has_value());
  EXPECT_TRUE(gather.Add(ShardOf(1, 50, 2)).commit.has_value());
}

// The scheduler before this one gave write 1 up. Rank 2 has heard it, and has
// written again; ranks 0 and 1 say what they said before.
TEST(CheckpointGather, SeesFromTheRanksWhatASchedulerBeforeGaveUp) {
  CheckpointGather gather(3);
  EXPECT_TRUE(gather.Add(ShardOf(1, 50, 1)).unheard.empty());
  EXPECT_TRUE(gather.Add(ShardOf(2, 50, 2)).unheard.empty())
      << "rank 0 has not said whether it has committed";
  EXPECT_EQ(RanksOf(gather.Add(ShardOf(0, 50, 1))), (std::vector<int>{0, 1}));
  // What they say once more is answered once more, and no answer.
  EXPECT_EQ(RanksOf(gather.Add(ShardOf(1, 50, 1))), std::vector<int>{1});
  EXPECT_TRUE(gather.Add(ShardOf(0, 50, 2)).unheard.empty());
  EXPECT_TRUE(gather.Add(ShardOf(1, 50, 2)).commit.has_value());
}

// Rank 0 says its commit, which could not be stored, before its next answer.
TEST(CheckpointGather, WhatWasCommittedBeforeIsNotGivenUp) {
  CheckpointGather gather(3);
  gather.Add(ShardOf(1, 50, 1));
  gather.Add(ShardOf(2, 60, 2));
  EXPECT_TRUE(gather.Committed(50));
  EXPECT_TRUE(gather.Add(ShardOf(0, 60, 2)).unheard.empty());
  EXPECT_TRUE(gather.Add(ShardOf(1, 60, 2)).commit.has_value());
}

}  // namespace
}  // namespace troupe
