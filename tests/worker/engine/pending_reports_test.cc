#include "worker/engine/pending_reports.h"

#include <filesystem>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/small_job.h"

namespace troupe {
namespace {

PendingReport OfStep(int64_t step) {
  return {.finished = {.context = {.step = step}}, .memory_bytes = 100 * step};
}

TEST(PendingReports, GivesUpAStepWhenItIsAskedForIt) {
  PendingReports pending;
  for (const int64_t step : {5, 6, 7}) pending.Add(OfStep(step));
  // Of an earlier run, not reported by this one.
  EXPECT_FALSE(pending.Take(4).has_value());
  const auto report = pending.Take(5);
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->finished.context.step, 5);
  EXPECT_EQ(report->memory_bytes, 500);
  EXPECT_FALSE(pending.Take(5).has_value());
  EXPECT_TRUE(pending.Take(6).has_value());
  EXPECT_TRUE(pending.Take(7).has_value());
  EXPECT_FALSE(pending.Take(8).has_value());
}

// A pipeline whose ranks report a step when they have summed it, later.
JobSpec UndrainedJob() {
  JobSpec job = SmallJob();
  job.mutable_training()->set_micro_batch_size(2);
  job.mutable_training()->set_gradient_clipping(0);
  job.mutable_parallelism()->set_pipeline(2);
  job.mutable_parallelism()->set_pipeline_schedule("pipedream");
  return job;
}

TEST(PendingReports,
     StepsThatAreSummedLateAreReportedInTheirOrderAndAllOfThem) {
  const TrainingRun run = Train(UndrainedJob(), {.ranks = 2});
  ASSERT_TRUE(run.status().ok()) << run.status();
  ASSERT_GT(run.plan.derived().report_lag(), 0);
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(run.steps[rank].size(), 20u);
    ASSERT_EQ(run.timelines[rank].size(), 20u);
    for (int i = 0; i < 20; ++i) {
      const StepRecord& step = run.steps[rank][i];
      EXPECT_EQ(step.step(), i + 1);
      EXPECT_EQ(step.samples_consumed(), 8 * (i + 1));
      EXPECT_GT(step.loss(), 0);
      EXPECT_GT(step.grad_norm(), 0);
      // Both ranks know the same, to the bit.
      EXPECT_EQ(step.loss(), run.steps[0][i].loss());
      EXPECT_EQ(step.grad_norm(), run.steps[0][i].grad_norm());
      EXPECT_EQ(step.has_validation_loss(), i + 1 == 10 || i + 1 == 20);
    }
  }
  EXPECT_LT(run.steps[0].back().loss(), run.steps[0][0].loss() - 0.5);
  EXPECT_EQ(run.bytes_left, 0u);
}

TEST(PendingReports, ARequestToStopReportsStepsThatAreSummedLate) {
  JobSpec job = UndrainedJob();
  job.mutable_training()->set_steps(1'000'000);
  const std::string directory = absl::StrCat(testing::TempDir(), "/undrained");
  std::filesystem::remove_all(directory);
  job.mutable_checkpoint()->set_directory(directory);
  const TrainingRun run =
      Train(job, {.ranks = 2,
                  .on_step = [](int rank, const StepRecord& record,
                                const std::vector<TrainLoop*>& loops) {
                    if (rank == 1 && record.step() == 3) {
                      loops[1]->RequestSaveAndStop();
                    }
                  }});
  EXPECT_TRUE(absl::IsCancelled(run.statuses[0])) << run.statuses[0];
  EXPECT_TRUE(absl::IsCancelled(run.statuses[1])) << run.statuses[1];
  ASSERT_EQ(run.steps[0].size(), run.steps[1].size());
  // Step 3 is known when a later one has run; the request acts on the next.
  const int64_t last = 3 + run.plan.derived().report_lag() + 1;
  EXPECT_EQ(run.steps[0].back().step(), last);
  const auto newest = FindNewestComplete(directory, CheckDepth::kChecksums);
  ASSERT_TRUE(newest.ok()) << newest.status();
  EXPECT_EQ(newest->step, last);
}

TEST(PendingReports, ADivergedStepThatIsSummedLateIsNamed) {
  JobSpec job = UndrainedJob();
  job.mutable_optimizer()->set_name("sgd");
  job.mutable_optimizer()->set_lr(1e4);
  job.mutable_lr_scheduler()->set_warmup_steps(0);
  const TrainingRun run = Train(job, {.ranks = 2});
  EXPECT_TRUE(absl::IsFailedPrecondition(run.status())) << run.status();
  const int64_t reported = run.steps[0].size();
  EXPECT_TRUE(absl::StrContains(
      run.status().message(),
      absl::StrCat("of step ", reported + 1, ": training diverged")))
      << run.status();
}

}  // namespace
}  // namespace troupe
