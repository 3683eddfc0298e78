#include "worker/instructions/recompute.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "gtest/gtest.h"
#include "tests/equivalence/small_job.h"
#include "tests/worker/rank/small_rank.h"

namespace troupe {
namespace {

JobSpec Job() {
  JobSpec job = SmallJob();
  job.mutable_training()->set_dropout(0.1);
  RecomputeSpec& recompute = *job.mutable_memory()->mutable_recompute();
  recompute.add_units(1);
  recompute.add_units(3);
  return job;
}

std::string Contents(SmallRank& rank, const Buffer& buffer) {
  return std::string(
      rank.Memory<char>(buffer.kind(), buffer.unit(), buffer.micro_batch()),
      buffer.bytes());
}

// The same each time, whatever lay there; masks too.
TEST(Recompute, MakesTheSameEachTime) {
  SmallRank rank(Job(), {});
  ASSERT_TRUE(rank.Run("L m0").ok());
  ASSERT_TRUE(rank.RunAll("F").ok());
  const Buffer& buffer = rank.Find(Buffer::RECOMPUTED, 1, 0);
  char* const memory = rank.Memory<char>(Buffer::RECOMPUTED, 1, 0);
  std::fill(memory, memory + buffer.bytes(), '\0');
  ASSERT_TRUE(rank.Run("C u1 m0").ok());
  const std::string made = Contents(rank, buffer);
  EXPECT_NE(made, std::string(buffer.bytes(), '\0'));
  ASSERT_TRUE(rank.Run("C u1 m0").ok());
  EXPECT_EQ(Contents(rank, buffer), made);
}

TEST(Recompute, CountsNoLossTwice) {
  SmallRank rank(Job(), {});
  ASSERT_TRUE(rank.Run("L m0").ok());
  ASSERT_TRUE(rank.RunAll("F").ok());
  const double loss = rank.Sum(kLossSum);
  const double tokens = rank.Sum(kTokensSum);
  EXPECT_GT(loss, 0);
  ASSERT_TRUE(rank.Run("C u3 m0").ok());
  EXPECT_EQ(rank.Sum(kLossSum), loss);
  EXPECT_EQ(rank.Sum(kTokensSum), tokens);
}

}  // namespace
}  // namespace troupe
