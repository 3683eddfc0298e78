#include "worker/instructions/load_batch.h"

#include <numeric>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "proto/plan/batch.h"
#include "proto/plan/batch_sources.h"
#include "storage/dataset/token_file_writer.h"
#include "tests/equivalence/small_job.h"
#include "tests/worker/rank/small_rank.h"
#include "worker/instructions/fill_sample.h"

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

// A tensor of the batch of a micro-batch.
const int32_t* Ids(SmallRank& rank, int micro_batch, const std::string& name) {
  const BatchSchema& batch = rank.state().plan->batch();
  const std::vector<int64_t> offsets = BatchOffsets(batch);
  const char* const memory = rank.Memory<char>(Buffer::BATCH, {}, micro_batch);
  for (int i = 0; i < batch.size(); ++i) {
    if (batch[i].tensor().name() != name) continue;
    return reinterpret_cast<const int32_t*>(memory + offsets[i]);
  }
  ADD_FAILURE() << "no " << name;
  return nullptr;
}

TEST(LoadBatch, ReadsTheSamplesOfThisRankAndMicroBatch) {
  JobSpec job = SmallJob();
  job.mutable_training()->set_micro_batch_size(2);
  SmallRank rank(job, {.ranks = 2, .rank = 1});
  rank.state().step.samples_before = 40;
  ASSERT_TRUE(rank.Run("L m1").ok());
  // 40 + r M b + m b, with M = 2 and b = 2.
  const int32_t* const tokens = Ids(rank, 1, kBatchTokens);
  const int32_t* const targets = Ids(rank, 1, kBatchTargets);
  for (int i = 0; i < 2; ++i) {
    const std::vector<int32_t> want = Sample(rank.state(), 40 + 4 + 2 + i);
    for (int t = 0; t < 17; ++t) {
      EXPECT_EQ(tokens[i * 17 + t], want[t]);
      EXPECT_EQ(targets[i * 17 + t], want[17 + t]);
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
  const int32_t* const tokens = Ids(rank, 0, kBatchTokens);
  const std::vector<int32_t> want = Sample(rank.state(), 40 + 2 * 8);
  for (int t = 0; t < 17; ++t) EXPECT_EQ(tokens[t], want[t]);
}

TEST(LoadBatch, ValidationEndsWithTargetsThatCountForNothing) {
  // 13 sequences over two ranks, four of a micro-batch: the last three of the
  // last micro-batch are missing.
  JobSpec job = SmallJob();
  job.mutable_training()->set_micro_batch_size(4);
  SmallRank rank(job, {.ranks = 2, .rank = 1, .program = Program::VALIDATE});
  ASSERT_TRUE(rank.Run("L m1").ok());
  const int32_t* const targets = Ids(rank, 1, kBatchTargets);
  for (int t = 0; t < 17; ++t) {
    EXPECT_GE(targets[t], 0);
    for (int i = 1; i < 4; ++i) EXPECT_EQ(targets[i * 17 + t], -1);
  }
}

// For whole sequences.
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
  const int32_t* const loaded = Ids(rank, 1, kBatchDocuments);
  const int32_t* const loaded_targets = Ids(rank, 1, kBatchTargets);
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
      EXPECT_EQ(loaded_targets[i * 17 + t], targets[t]);
      EXPECT_EQ(loaded[i * 17 + t], documents[t]);
    }
  }
}

TEST(FillSample, HasARowForEachSource) {
  const TokenSample sample = {.tokens = {7, 8, 9, 10},
                              .targets = {8, -1, 10, -1},
                              .documents = {0, 0, 2, 2}};
  const auto filled = [](const TokenSample& from, absl::string_view source,
                         int ahead = 0) {
    std::vector<int32_t> to(4, -77);
    const auto fill = FindFillSample(source);
    EXPECT_TRUE(fill.ok()) << fill.status();
    if (fill.ok()) (*fill)(from, ahead, to.data());
    return to;
  };
  for (const BatchSource& source : BatchSources()) {
    EXPECT_NE(filled(sample, source.name), std::vector<int32_t>(4, -77))
        << source.name;
  }
  EXPECT_EQ(filled(sample, "next_tokens"), sample.targets);
  EXPECT_EQ(filled(sample, "positions"), (std::vector<int32_t>{0, 1, 0, 1}));
  TokenSample one_document = sample;
  one_document.documents.clear();
  EXPECT_EQ(filled(one_document, "positions"),
            (std::vector<int32_t>{0, 1, 2, 3}));
  // Past the end of a document, and of the window.
  EXPECT_EQ(filled(sample, "tokens", 1), (std::vector<int32_t>{8, 8, 10, 10}));
  EXPECT_EQ(filled(sample, "next_tokens", 1),
            (std::vector<int32_t>{-1, -1, -1, -1}));
  EXPECT_EQ(filled(one_document, "tokens", 2),
            (std::vector<int32_t>{9, 10, 10, 10}));
  EXPECT_EQ(filled(one_document, "next_tokens", 2),
            (std::vector<int32_t>{10, -1, -1, -1}));
  EXPECT_EQ(filled(one_document, "next_tokens", 9),
            (std::vector<int32_t>{-1, -1, -1, -1}));
  EXPECT_EQ(FindFillSample("images").status(),
            absl::FailedPreconditionError(
                "this worker has no source images of tensors of the batch; "
                "scheduler and worker must be of one build"));
}

// Of three dims, the second cut into two runs, with room for more, and the last
// into one.
TEST(FillSample, CopiesABoxOfASample) {
  const LoadedPiece piece = {
      .dims = {{.whole = 2, .local = 2, .runs = {{0, 2}}},
               {.whole = 8, .local = 5, .runs = {{1, 3}, {6, 8}}},
               {.whole = 6, .local = 3, .runs = {{3, 6}}}}};
  std::vector<int16_t> whole(2 * 8 * 6);
  std::iota(whole.begin(), whole.end(), int16_t{0});
  std::vector<int16_t> to(2 * 5 * 3, -1);
  CopyPiece(piece, sizeof(int16_t), reinterpret_cast<const char*>(whole.data()),
            reinterpret_cast<char*>(to.data()));
  std::vector<int16_t> want(to.size(), -1);
  const int rows[] = {1, 2, 6, 7};
  for (int a = 0; a < 2; ++a) {
    for (int b = 0; b < 4; ++b) {
      for (int c = 0; c < 3; ++c) {
        want[(a * 5 + b) * 3 + c] =
            static_cast<int16_t>((a * 8 + rows[b]) * 6 + 3 + c);
      }
    }
  }
  EXPECT_EQ(to, want);
}

}  // namespace
}  // namespace troupe
