#include "worker/instructions/snapshot.h"

#include <set>
#include <string>

#include "gtest/gtest.h"
#include "tests/equivalence/small_job.h"
#include "tests/worker/rank/small_rank.h"

namespace troupe {
namespace {

JobSpec CheckpointedJob() {
  JobSpec job = SmallJob();
  job.mutable_checkpoint()->set_directory("/tmp/unused");
  return job;
}

TEST(Snapshot, RanksTogetherCollectEveryTensorOnce) {
  std::set<std::string> names;
  for (int r = 0; r < 2; ++r) {
    SmallRank rank(CheckpointedJob(),
                   {.ranks = 2, .rank = r, .program = Program::CHECKPOINT});
    if (rank.program().instructions_size() > 0) {
      ASSERT_TRUE(rank.RunAll("K").ok());
    }
    for (const StateTensor& tensor : rank.state().snapshot) {
      EXPECT_TRUE(names.insert(tensor.name).second) << tensor.name;
      EXPECT_NE(tensor.data, nullptr);
    }
  }
  // Two tables, 12 tensors a block, two of the last norm; each with two
  // moments.
  EXPECT_EQ(names.size(), 3u * (2 + 2 * 12 + 2));
  EXPECT_EQ(names.count("transformer.h.1.mlp.c_fc.weight"), 1u);
  EXPECT_EQ(names.count("optimizer.exp_avg_sq.transformer.wte.weight"), 1u);
}

TEST(Snapshot, OfBf16IsOfTheMasterWeights) {
  JobSpec job = CheckpointedJob();
  job.mutable_training()->set_precision("bf16");
  job.mutable_checkpoint()->set_background(false);
  SmallRank rank(job, {.program = Program::CHECKPOINT});
  ASSERT_TRUE(rank.RunAll("K").ok());
  const StateTensor& first = rank.state().snapshot.front();
  EXPECT_EQ(first.name, "transformer.wte.weight");
  EXPECT_EQ(first.data, rank.Memory<char>(Buffer::MASTER_WEIGHTS, 0));
}

}  // namespace
}  // namespace troupe
