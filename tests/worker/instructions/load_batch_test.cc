#include "worker/instructions/load_batch.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "storage/dataset/token_file_writer.h"
#include "tests/equivalence/small_job.h"
#include "tests/worker/rank/small_rank.h"

namespace troupe {
namespace {

std::vector<int32_t> Sample(const RankState& state, uint64_t number) {
  std::vector<int32_t> tokens(17);
  std::vector<int32_t> targets(17);
  EXPECT_TRUE(state.data
                  ->Read(number, {.tokens = absl::MakeSpan(tokens),
                                  .targets = absl::MakeSpan(targets)})
                  .ok());
  tokens.insert(tokens.end(), targets.begin(), targets.end());
  return tokens;
}

TEST(LoadBatch, ReadsTheSamplesOfThisRankAndMicroBatch) {
  JobSpec job = SmallJob();
  job.mutable_training()->set_micro_batch_size(2);
  SmallRank rank(job, {.ranks = 2, .rank = 1});
  rank.state().step.samples_before = 40;
  ASSERT_TRUE(rank.Run("L m1").ok());
  // 40 + r M b + m b, with M = 2 and b = 2.
  const int32_t* batch = rank.Memory<int32_t>(Buffer::BATCH, {}, 1);
  for (int i = 0; i < 2; ++i) {
    const std::vector<int32_t> want = Sample(rank.state(), 40 + 4 + 2 + i);
    for (int t = 0; t < 17; ++t) {
      EXPECT_EQ(batch[i * 17 + t], want[t]);
      EXPECT_EQ(batch[(2 + i) * 17 + t], want[17 + t]);
    }
  }
}

TEST(LoadBatch, AheadOfItsStepReadsWhatALaterStepReads) {
  SmallRank rank(SmallJob(), {});
  rank.state().step.samples_before = 40;
  Instruction ahead = rank.program().instructions(0);
  ASSERT_EQ(ahead.kind(), Instruction::LOAD_BATCH);
  ahead.set_ahead(2);
  ASSERT_TRUE(RunLoadBatch({rank.state(), rank.program(), ahead}).ok());
  const int32_t* batch = rank.Memory<int32_t>(Buffer::BATCH, {}, 0);
  const std::vector<int32_t> want = Sample(rank.state(), 40 + 2 * 8);
  for (int t = 0; t < 17; ++t) EXPECT_EQ(batch[t], want[t]);
}

TEST(LoadBatch, ValidationEndsWithTargetsThatCountForNothing) {
  // 13 sequences over two ranks, four of a micro-batch: the last three of the
  // last micro-batch are missing.
  JobSpec job = SmallJob();
  job.mutable_training()->set_micro_batch_size(4);
  SmallRank rank(job, {.ranks = 2, .rank = 1, .program = Program::VALIDATE});
  ASSERT_TRUE(rank.Run("L m1").ok());
  const int32_t* targets = rank.Memory<int32_t>(Buffer::BATCH, {}, 1) + 4 * 17;
  for (int t = 0; t < 17; ++t) {
    EXPECT_GE(targets[t], 0);
    for (int i = 1; i < 4; ++i) EXPECT_EQ(targets[i * 17 + t], -1);
  }
}

// Behind tokens and targets of the rank's own positions, those of whole
// sequences.
TEST(LoadBatch, SaysWhereDocumentsBegin) {
  JobSpec job = SmallJob();
  const std::string path = testing::TempDir() + "/load_batch.tokens";
  auto writer = TokenFileWriter::Create(
      {.path = path, .vocab_size = 61, .tokenizer = "bytes"});
  ASSERT_TRUE(writer.ok()) << writer.status();
  for (int i = 0; i < 400; ++i) {
    ASSERT_TRUE((*writer)->Append(std::vector<int32_t>(1 + i % 13, 7)).ok());
    ASSERT_TRUE((*writer)->EndDocument().ok());
  }
  ASSERT_TRUE((*writer)->Finish().ok());
  job.mutable_data()->set_tokens(path);
  job.mutable_data()->set_isolate_documents(true);
  job.mutable_training()->set_micro_batch_size(2);
  SmallRank rank(job, {.ranks = 2, .rank = 1});
  ASSERT_TRUE(rank.Run("L m1").ok());
  const int32_t* batch = rank.Memory<int32_t>(Buffer::BATCH, {}, 1);
  for (int i = 0; i < 2; ++i) {
    std::vector<int32_t> tokens(17), targets(17), documents(17);
    ASSERT_TRUE(rank.state()
                    .data
                    ->Read(4 + 2 + i, {.tokens = absl::MakeSpan(tokens),
                                       .targets = absl::MakeSpan(targets),
                                       .documents = absl::MakeSpan(documents)})
                    .ok());
    EXPECT_GT(documents.back(), 0);
    for (int t = 0; t < 17; ++t) {
      EXPECT_EQ(batch[(2 + i) * 17 + t], targets[t]);
      EXPECT_EQ(batch[(4 + i) * 17 + t], documents[t]);
    }
  }
}

}  // namespace
}  // namespace troupe
