#include "scheduler/cluster/checkpoint_gather.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

CheckpointShard ShardOf(int rank, int64_t step) {
  CheckpointShard shard;
  shard.mutable_ref()->set_rank(rank);
  shard.set_step(step);
  shard.mutable_shard()->set_file(absl::StrCat("shard-", rank));
  return shard;
}

TEST(CheckpointGather, CommitsWhenAllShardsAreThere) {
  CheckpointGather gather(3);
  EXPECT_FALSE(gather.Add(ShardOf(2, 50)).commit.has_value());
  EXPECT_FALSE(gather.Add(ShardOf(0, 50)).commit.has_value());
  EXPECT_FALSE(gather.Add(ShardOf(0, 50)).commit.has_value()) << "counted once";
  EXPECT_FALSE(gather.Add(ShardOf(1, 60)).commit.has_value())
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

TEST(CheckpointGather, GivesUpTheOldestOfMany) {
  CheckpointGather gather(2);
  for (int step = 1; step <= CheckpointGather::kOpenMax + 1; ++step) {
    gather.Add(ShardOf(0, step));
  }
  EXPECT_FALSE(gather.Add(ShardOf(1, 1)).commit.has_value());
  EXPECT_TRUE(
      gather.Add(ShardOf(1, CheckpointGather::kOpenMax)).commit.has_value());
}

CheckpointUnwritten FailureOf(int rank, int64_t step,
                              const std::string& error) {
  CheckpointUnwritten unwritten;
  unwritten.mutable_ref()->set_rank(rank);
  unwritten.set_step(step);
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
}

TEST(CheckpointGather, WhatWasGivenUpIsTriedAgain) {
  CheckpointGather gather(2);
  gather.Add(ShardOf(0, 50));
  EXPECT_EQ(gather.Add(FailureOf(1, 50, "ENOSPC")).unwritten.size(), 1u);
  EXPECT_FALSE(gather.Add(ShardOf(1, 50)).commit.has_value());
  EXPECT_TRUE(gather.Add(ShardOf(0, 50)).commit.has_value());
  // Rank 0 could not commit.
  EXPECT_EQ(gather.Add(FailureOf(0, 50, "ENOSPC")).unwritten.size(), 1u);
  EXPECT_FALSE(gather.Add(ShardOf(1, 50)).commit.has_value());
  EXPECT_TRUE(gather.Add(ShardOf(0, 50)).commit.has_value());
  EXPECT_TRUE(gather.Committed(50));
  EXPECT_TRUE(gather.Add(FailureOf(0, 50, "EIO")).unwritten.empty());
}

// Rank 0 has heard it, and writes again; rank 1 has not.
TEST(CheckpointGather, SaysAgainWhatASchedulerBeforeGaveUp) {
  CheckpointGather gather(2);
  gather.GaveUpBefore(50);
  EXPECT_TRUE(gather.Add(ShardOf(1, 50)).given_up_before);
  EXPECT_TRUE(gather.Add(ShardOf(0, 50)).given_up_before);
  EXPECT_FALSE(gather.Add(ShardOf(1, 50)).commit.has_value());
  EXPECT_TRUE(gather.Add(ShardOf(0, 50)).commit.has_value());
  // A later step is another one.
  CheckpointGather other(1);
  other.GaveUpBefore(50);
  EXPECT_TRUE(other.Add(ShardOf(0, 60)).commit.has_value());
}

}  // namespace
}  // namespace troupe
