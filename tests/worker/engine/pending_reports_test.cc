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

// Ranks of a pipeline, and sequences of a micro-batch.
struct Shape {
  int ranks = 2;
  int micro_batch = 2;
};

// Pipelines whose ranks sum and report a step after later ones have run.
class Undrained : public testing::TestWithParam<Shape> {
 protected:
  static int ranks() { return GetParam().ranks; }
  static JobSpec Job() {
    JobSpec job = SmallJob();
    job.mutable_training()->set_micro_batch_size(GetParam().micro_batch);
    job.mutable_training()->set_gradient_clipping(0);
    job.mutable_optimizer()->set_lr(3e-3);
    job.mutable_parallelism()->set_pipeline(ranks());
    job.mutable_parallelism()->set_pipeline_schedule("pipedream");
    return job;
  }
  // Endless, with a directory for checkpoints.
  static JobSpec JobToStop() {
    JobSpec job = Job();
    job.mutable_training()->set_steps(1'000'000);
    const std::string directory =
        absl::StrCat(testing::TempDir(), "/undrained");
    std::filesystem::remove_all(directory);
    job.mutable_checkpoint()->set_directory(directory);
    return job;
  }
  static void ExpectAllStopAfter(const TrainingRun& run, int64_t step) {
    for (int rank = 0; rank < ranks(); ++rank) {
      EXPECT_TRUE(absl::IsCancelled(run.statuses[rank])) << run.statuses[rank];
      ASSERT_FALSE(run.steps[rank].empty());
      EXPECT_EQ(run.steps[rank].back().step(), step) << "rank " << rank;
      EXPECT_EQ(run.steps[rank].size(), static_cast<size_t>(step));
    }
  }
};

TEST_P(Undrained, EveryStepIsReportedInItsOrder) {
  const TrainingRun run = Train(Job(), {.ranks = ranks()});
  ASSERT_TRUE(run.status().ok()) << run.status();
  ASSERT_GT(run.plan.derived().report_lag(), 0);
  for (int rank = 0; rank < ranks(); ++rank) {
    ASSERT_EQ(run.steps[rank].size(), 20u);
    ASSERT_EQ(run.timelines[rank].size(), 20u);
    for (int i = 0; i < 20; ++i) {
      const StepRecord& step = run.steps[rank][i];
      EXPECT_EQ(step.step(), i + 1);
      EXPECT_EQ(step.samples_consumed(), 8 * (i + 1));
      EXPECT_GT(step.loss(), 0);
      EXPECT_GT(step.grad_norm(), 0);
      // All ranks know the same, to the bit.
      EXPECT_EQ(step.loss(), run.steps[0][i].loss());
      EXPECT_EQ(step.grad_norm(), run.steps[0][i].grad_norm());
      ASSERT_EQ(step.has_validation_loss(), i + 1 == 10 || i + 1 == 20);
      EXPECT_EQ(step.validation_loss(), run.steps[0][i].validation_loss());
    }
  }
  EXPECT_LT(run.steps[0].back().loss(), run.steps[0][0].loss() - 0.2);
  EXPECT_EQ(run.bytes_left, 0u);
}

// Whichever rank is asked, when step 3 becomes known to it, sets its flag in
// the sum of step 4. The last rank to know that is report_lag steps further.
TEST_P(Undrained, ARequestEndsAllRanksAfterTheSameStep) {
  for (int asked = 0; asked < ranks(); ++asked) {
    const JobSpec job = JobToStop();
    const TrainingRun run =
        Train(job, {.ranks = ranks(),
                    .on_step = [&](int rank, const StepRecord& record,
                                   const std::vector<TrainLoop*>& loops) {
                      if (rank == asked && record.step() == 3) {
                        loops[rank]->RequestSaveAndStop();
                      }
                    }});
    const int64_t last = 4 + run.plan.derived().report_lag();
    ExpectAllStopAfter(run, last);
    const auto newest = FindNewestComplete(job.checkpoint().directory(),
                                           CheckDepth::kChecksums);
    ASSERT_TRUE(newest.ok()) << newest.status();
    EXPECT_EQ(newest->step, last);
  }
}

// Some ranks know of the second one when they stop, and others do not.
TEST_P(Undrained, OfTwoRequestsTheFirstCounts) {
  const JobSpec job = JobToStop();
  const TrainingRun run =
      Train(job, {.ranks = ranks(),
                  .on_step = [&](int rank, const StepRecord& record,
                                 const std::vector<TrainLoop*>& loops) {
                    if (rank == 0 && record.step() == 3) {
                      loops[rank]->RequestStop();
                    }
                    if (rank == ranks() - 1 && record.step() == 4) {
                      loops[rank]->RequestSaveAndStop();
                    }
                  }});
  ExpectAllStopAfter(run, 4 + run.plan.derived().report_lag());
  EXPECT_TRUE(std::filesystem::is_empty(job.checkpoint().directory()));
}

TEST_P(Undrained, ADivergedStepIsNamed) {
  JobSpec job = Job();
  job.mutable_optimizer()->set_name("sgd");
  job.mutable_optimizer()->set_lr(1e4);
  job.mutable_lr_scheduler()->set_warmup_steps(0);
  const TrainingRun run = Train(job, {.ranks = ranks()});
  int diverged = 0;
  for (int rank = 0; rank < ranks(); ++rank) {
    EXPECT_FALSE(run.statuses[rank].ok());
    if (!absl::IsFailedPrecondition(run.statuses[rank])) continue;
    ++diverged;
    EXPECT_TRUE(
        absl::StrContains(run.statuses[rank].message(),
                          absl::StrCat("of step ", run.steps[rank].size() + 1,
                                       ": training diverged")))
        << run.statuses[rank];
  }
  EXPECT_GT(diverged, 0);
}

// Steps of four micro-batches; and of one, in which ranks are several steps
// apart.
INSTANTIATE_TEST_SUITE_P(Pipelines, Undrained,
                         testing::Values(Shape{2, 2}, Shape{4, 8}),
                         [](const auto& info) {
                           return absl::StrCat(info.param.ranks, "_ranks");
                         });

}  // namespace
}  // namespace troupe
