#include "scheduler/cluster/step_gather.h"

#include <cmath>

#include "gtest/gtest.h"

namespace troupe {
namespace {

StepReport ReportOf(int rank, int64_t step, bool traced = false) {
  StepReport report;
  report.mutable_ref()->set_rank(rank);
  report.mutable_record()->set_step(step);
  report.mutable_record()->set_loss(2.5);
  report.mutable_record()->set_learning_rate(rank == 0 ? 0.1 : 0.2);
  report.mutable_record()->set_step_seconds(rank == 1 ? 0.5 : 0.25);
  report.mutable_record()->set_memory_bytes(100 - rank);
  report.mutable_record()->set_checkpoint_stall_seconds(rank);
  TierTraffic& nvme = *report.mutable_record()->add_tiers();
  nvme.set_tier(NVME);
  nvme.set_bytes_in(100);
  nvme.set_waited_seconds(rank);
  if (rank == 2) {
    report.mutable_record()->set_validation_loss(3);
    report.mutable_record()->mutable_sample()->set_text("upon");
  }
  if (traced) report.mutable_timeline()->add_spans()->set_unit(rank);
  return report;
}

Plan PlanOf() {
  Plan plan;
  plan.add_lanes()->set_name("ONLY");
  plan.mutable_derived()->set_tokens_per_step(1000);
  plan.mutable_derived()->set_model_flops_per_token(1e6);
  plan.mutable_prediction()->set_peak_flops_per_second(1e10);
  return plan;
}

// The peak of datasheets counts where they are known.
TEST(StepGather, MeasuresUtilizationAgainstTheDatasheets) {
  Plan plan = PlanOf();
  plan.mutable_prediction()->set_datasheet_flops_per_second(2e10);
  StepGather gather(1, plan);
  const auto steps = gather.Add(ReportOf(0, 1, false));
  ASSERT_EQ(steps.size(), 1u);
  const StepRecord& record = steps[0].record;
  EXPECT_GT(record.mfu(), 0);
  EXPECT_DOUBLE_EQ(record.mfu(), record.tokens_per_second() * 1e6 / 2e10);
}

// Ranks that have no scalars of a step are neither believed nor compared, and
// their time is not the step's.
TEST(StepGather, WhatIsOfOthersIsTheirs) {
  StepGather gather(3, PlanOf());
  for (const int rank : {0, 1}) {
    StepReport report = ReportOf(rank, 1);
    report.set_of_others(true);
    report.mutable_record()->set_loss(0);
    EXPECT_TRUE(gather.Add(report).empty());
  }
  const auto steps = gather.Add(ReportOf(2, 1));
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_FALSE(steps[0].difference.has_value());
  EXPECT_EQ(steps[0].record.loss(), 2.5);
  EXPECT_EQ(steps[0].record.step_seconds(), 0.25);
  EXPECT_EQ(steps[0].record.memory_bytes(), 100);
}

TEST(StepGather, OneRecordFromAllRanks) {
  StepGather gather(3, PlanOf());
  EXPECT_TRUE(gather.Add(ReportOf(2, 1, true)).empty());
  EXPECT_TRUE(gather.Add(ReportOf(1, 1, true)).empty());
  EXPECT_TRUE(gather.Add(ReportOf(1, 1, true)).empty()) << "counted once";
  const auto steps = gather.Add(ReportOf(0, 1, true));
  ASSERT_EQ(steps.size(), 1u);
  const StepRecord& record = steps[0].record;
  EXPECT_EQ(record.step(), 1);
  EXPECT_EQ(record.learning_rate(), 0.1) << "rank 0's";
  EXPECT_FALSE(steps[0].difference.has_value());
  EXPECT_EQ(record.step_seconds(), 0.5) << "the slowest rank's";
  EXPECT_EQ(record.memory_bytes(), 100) << "the largest rank's";
  EXPECT_EQ(record.checkpoint_stall_seconds(), 2) << "the longest";
  ASSERT_EQ(record.tiers_size(), 1);
  EXPECT_EQ(record.tiers(0).bytes_in(), 300) << "of all";
  EXPECT_EQ(record.tiers(0).waited_seconds(), 2) << "the longest";
  EXPECT_EQ(record.validation_loss(), 3) << "of the rank that has it";
  EXPECT_EQ(record.sample().text(), "upon") << "of the rank that has it";
  EXPECT_DOUBLE_EQ(record.tokens_per_second(), 2000);
  EXPECT_DOUBLE_EQ(record.mfu(), 0.2);
  ASSERT_TRUE(steps[0].timeline.has_value());
  EXPECT_EQ(steps[0].timeline->lanes(0).name(), "ONLY");
  ASSERT_EQ(steps[0].timeline->ranks_size(), 3);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(steps[0].timeline->ranks(rank).rank(), rank);
    EXPECT_EQ(steps[0].timeline->ranks(rank).spans(0).unit(), rank);
  }
}

// Rank 0 alone has the losses of single sequences, and no rank their sums.
TEST(StepGather, OfSingleSequencesItNeedsNoSums) {
  Plan plan = PlanOf();
  *plan.mutable_sums() = FirstSums();
  for (const char* const name :
       {kSequenceLossesSum, kSequenceTokensSum, kExpertTokensSum}) {
    plan.add_sums()->set_name(name);
    plan.mutable_sums()->rbegin()->set_elements(2);
  }
  StepGather gather(2, plan);
  std::vector<GatheredStep> steps;
  for (const int rank : {1, 0}) {
    StepReport report = ReportOf(rank, 1);
    for (const double sum : {1, 2, 3, 0, 0, 30, 40}) report.add_sums(sum);
    report.set_sequences_crc32c(5);
    if (rank == 0) {
      report.mutable_record()->mutable_sequence_losses()->add_losses(1.5);
    }
    steps = gather.Add(report);
  }
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_FALSE(steps[0].difference.has_value());
  ASSERT_EQ(steps[0].record.sequence_losses().losses_size(), 1);
  EXPECT_EQ(steps[0].record.sequence_losses().losses(0), 1.5);
  ASSERT_TRUE(steps[0].experts.has_value());
  EXPECT_EQ(steps[0].experts->layers[0].choices, std::vector<float>({30, 40}));
}

// Ranks of one island hold the same, those of another their own.
TEST(StepGather, IslandsAreComparedByThemselvesAndTheirMeansAreReported) {
  Plan plan = PlanOf();
  plan.mutable_job()->mutable_parallelism()->set_islands(2);
  const auto report = [](int rank, int64_t step, double loss) {
    StepReport of_rank = ReportOf(rank, step);
    of_rank.mutable_record()->set_loss(loss);
    of_rank.mutable_record()->set_grad_norm(2 * loss);
    return of_rank;
  };
  StepGather gather(4, plan);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(gather.Add(report(rank, 1, rank < 2 ? 2 : 3)).empty());
  }
  auto steps = gather.Add(report(3, 1, 3));
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_FALSE(steps[0].difference.has_value());
  EXPECT_EQ(steps[0].record.loss(), 2.5);
  EXPECT_EQ(steps[0].record.grad_norm(), 5);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(gather.Add(report(rank, 2, rank < 2 ? 2 : 3)).empty());
  }
  steps = gather.Add(report(3, 2, 3.5));
  ASSERT_EQ(steps.size(), 1u);
  ASSERT_TRUE(steps[0].difference.has_value());
  EXPECT_EQ(steps[0].difference->agreed, 2);
  EXPECT_EQ(steps[0].difference->others, 3);
}

TEST(StepGather, WhereRanksDifferTheRecordIsThatOfMost) {
  StepGather gather(3, PlanOf());
  StepReport wrong = ReportOf(0, 1);
  wrong.mutable_record()->set_loss(2.75);
  gather.Add(wrong);
  gather.Add(ReportOf(1, 1));
  const auto steps = gather.Add(ReportOf(2, 1));
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].record.loss(), 2.5);
  ASSERT_TRUE(steps[0].difference.has_value());
  EXPECT_EQ(steps[0].difference->wrong, std::vector<int>({0}));
}

TEST(StepGather, StepsComeOutInOrderOnce) {
  StepGather gather(2, PlanOf());
  EXPECT_TRUE(gather.Add(ReportOf(0, 1)).empty());
  EXPECT_TRUE(gather.Add(ReportOf(0, 2)).empty());
  EXPECT_TRUE(gather.Add(ReportOf(1, 2)).empty()) << "step 1 comes first";
  const auto steps = gather.Add(ReportOf(1, 1));
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].record.step(), 1);
  EXPECT_EQ(steps[1].record.step(), 2);
  EXPECT_TRUE(gather.Add(ReportOf(0, 1)).empty());
  EXPECT_TRUE(gather.Add(ReportOf(1, 1)).empty()) << "it is past";
}

TEST(StepGather, ATimelineNeedsAllRanks) {
  StepGather gather(2, PlanOf());
  gather.Add(ReportOf(0, 1, true));
  const auto steps = gather.Add(ReportOf(1, 1, false));
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_FALSE(steps[0].timeline.has_value());
}

TEST(StepGather, OpenStepsAreBounded) {
  StepGather gather(2, PlanOf());
  int out = 0;
  for (int step = 1; step <= 1000; ++step) {
    out += static_cast<int>(gather.Add(ReportOf(0, step)).size());
  }
  EXPECT_EQ(out, 1000 - StepGather::kStepsOpenMax);
}

TEST(StepGather, AnIslandMayBeAheadByARound) {
  Plan plan = PlanOf();
  plan.mutable_job()->mutable_parallelism()->set_islands(2);
  plan.mutable_job()->mutable_islands()->set_every(500);
  StepGather gather(2, plan);
  const auto report = [](int rank, int64_t step) {
    StepReport of_rank = ReportOf(rank, step);
    of_rank.mutable_record()->set_loss(rank == 0 ? 2 : 3);
    return of_rank;
  };
  for (int step = 1; step <= 500; ++step) {
    ASSERT_TRUE(gather.Add(report(0, step)).empty()) << step;
  }
  for (int step = 1; step <= 500; ++step) {
    const auto steps = gather.Add(report(1, step));
    ASSERT_EQ(steps.size(), 1u);
    EXPECT_EQ(steps[0].record.step(), step);
    EXPECT_EQ(steps[0].record.loss(), 2.5) << "the mean over both";
  }
}

}  // namespace
}  // namespace troupe
