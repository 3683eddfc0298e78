#include "scheduler/cluster/checkpoint_gather.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

CheckpointShard ShardOf(int rank, int64_t step) {
  CheckpointShard shard;
  shard.mutable_ref()->set_rank(rank);
  shard.set_step(step);
  shard.set_file(absl::StrCat("shard-", rank));
  return shard;
}

TEST(CheckpointGather, CommitsWhenAllShardsAreThere) {
  CheckpointGather gather(3);
  EXPECT_FALSE(gather.Add(ShardOf(2, 50)).has_value());
  EXPECT_FALSE(gather.Add(ShardOf(0, 50)).has_value());
  EXPECT_FALSE(gather.Add(ShardOf(0, 50)).has_value()) << "counted once";
  EXPECT_FALSE(gather.Add(ShardOf(1, 60)).has_value()) << "another checkpoint";
  const auto commit = gather.Add(ShardOf(1, 50));
  ASSERT_TRUE(commit.has_value());
  EXPECT_EQ(commit->step(), 50);
  ASSERT_EQ(commit->shards_size(), 3);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(commit->shards(rank).file(), absl::StrCat("shard-", rank));
  }
}

TEST(CheckpointGather, WhatIsHeardAgainIsPast) {
  CheckpointGather gather(1);
  EXPECT_TRUE(gather.Add(ShardOf(0, 50)).has_value());
  EXPECT_FALSE(gather.Add(ShardOf(0, 50)).has_value());
  EXPECT_FALSE(gather.Add(ShardOf(0, 40)).has_value());
  EXPECT_TRUE(gather.Committed(50));
  EXPECT_FALSE(gather.Committed(50));
  EXPECT_FALSE(gather.Committed(40));
  EXPECT_TRUE(gather.Add(ShardOf(0, 60)).has_value());
  EXPECT_TRUE(gather.Committed(60));
}

TEST(CheckpointGather, GivesUpTheOldestOfMany) {
  CheckpointGather gather(2);
  for (int step = 1; step <= CheckpointGather::kOpenMax + 1; ++step) {
    gather.Add(ShardOf(0, step));
  }
  EXPECT_FALSE(gather.Add(ShardOf(1, 1)).has_value());
  EXPECT_TRUE(gather.Add(ShardOf(1, CheckpointGather::kOpenMax)).has_value());
}

}  // namespace
}  // namespace troupe
