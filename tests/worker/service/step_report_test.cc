#include "worker/service/step_report.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;

// Those of every plan, two of sequences, and one behind them.
Sums SumsWithSequences(int64_t sequences) {
  Sums sums = FirstSums();
  for (const char* const name : {kSequenceLossesSum, kSequenceTokensSum}) {
    sums.Add()->set_name(name);
    sums.rbegin()->set_elements(sequences);
  }
  sums.Add()->set_name("loads");
  sums.rbegin()->set_elements(2);
  return sums;
}

StepReport ReportOfRank(int rank, const std::vector<double>& values,
                        int64_t sequences) {
  RankRef ref;
  ref.set_job(3);
  ref.set_rank(rank);
  StepRecord record;
  record.set_step(7);
  for (int64_t i = 0; i < sequences; ++i) {
    record.mutable_sequence_losses()->add_losses(1.5);
    record.mutable_sequence_losses()->add_counted_tokens(2);
  }
  return MakeStepReport(ref, SumsWithSequences(sequences),
                        {.record = record, .values = values});
}

TEST(StepReport, WhatIsOfSequencesGoesOutOnce) {
  const std::vector<double> values = {6, 4, 0, 0, 0, 1.5, 4.5, 2, 2, 8, 9};
  const StepReport first = ReportOfRank(0, values, 2);
  const StepReport other = ReportOfRank(1, values, 2);
  EXPECT_EQ(other.ref().rank(), 1);
  EXPECT_EQ(other.record().step(), 7);
  EXPECT_EQ(first.record().sequence_losses().losses_size(), 2);
  EXPECT_FALSE(other.record().has_sequence_losses());
  EXPECT_THAT(first.sums(), ElementsAre(6, 4, 0, 0, 0, 8, 9));
  EXPECT_THAT(other.sums(), ElementsAre(6, 4, 0, 0, 0, 8, 9));
  ASSERT_TRUE(first.has_sequences_crc32c());
  EXPECT_EQ(first.sequences_crc32c(), other.sequences_crc32c());
  for (int place = 5; place < 9; ++place) {
    std::vector<double> wrong = values;
    wrong[place] += 1e-15 * wrong[place];
    EXPECT_NE(ReportOfRank(1, wrong, 2).sequences_crc32c(),
              first.sequences_crc32c())
        << place;
  }
}

TEST(StepReport, OfManySequencesIsSmall) {
  std::vector<double> values(5 + 2 * 65536 + 2, 1.25);
  EXPECT_GT(ReportOfRank(0, values, 65536).ByteSizeLong(), 65536u * 8);
  EXPECT_LT(ReportOfRank(1, values, 65536).ByteSizeLong(), 200u);
}

TEST(StepReport, OfNoSequencesHasNoChecksum) {
  RankRef ref;
  const StepReport report = MakeStepReport(
      ref, FirstSums(),
      {.record = StepRecord(), .values = std::vector<double>({6, 4, 0, 0, 0})});
  EXPECT_THAT(report.sums(), ElementsAre(6, 4, 0, 0, 0));
  EXPECT_FALSE(report.has_sequences_crc32c());
}

}  // namespace
}  // namespace troupe
