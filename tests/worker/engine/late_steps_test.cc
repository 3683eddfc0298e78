// Steps whose scalars are read when the next one is started: what is reported,
// and when ranks stop.
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/small_job.h"
#include "tests/ops/split_memory_device.h"

namespace troupe {
namespace {

std::unique_ptr<Device> NewSplitDevice() {
  return std::make_unique<SplitMemoryDevice>(CpuDeviceOptions{.threads = 1});
}

// Two ranks; a checkpoint after every fifth step of twenty, and a validation
// after every seventh.
JobSpec Job(const std::string& name) {
  JobSpec job = SmallJob();
  job.mutable_training()->set_micro_batch_size(2);
  job.mutable_training()->set_validate_every(7);
  job.mutable_parallelism()->set_data(2);
  const std::string directory = absl::StrCat(testing::TempDir(), "/", name);
  std::filesystem::remove_all(directory);
  job.mutable_checkpoint()->set_directory(directory);
  job.mutable_checkpoint()->set_every(5);
  return job;
}

void ExpectStepsInOrder(const TrainingRun& run, int64_t last) {
  for (const std::vector<StepRecord>& steps : run.steps) {
    ASSERT_EQ(steps.size(), static_cast<size_t>(last));
    for (int64_t i = 0; i < last; ++i) {
      EXPECT_EQ(steps[i].step(), i + 1);
      EXPECT_GT(steps[i].step_seconds(), 0);
    }
  }
  EXPECT_EQ(run.bytes_left, 0u);
}

struct Reading {
  bool on_host = false;
  bool late = false;
  int64_t trace_every = 0;
};

TrainOptions OptionsOf(const Reading& reading) {
  TrainOptions options = {.ranks = 2,
                          .trace_every = reading.trace_every,
                          .reads_late = reading.late};
  if (!reading.on_host) options.new_device = NewSplitDevice;
  return options;
}

TEST(LateSteps, AreReportedOnceInOrderAndAsIfReadAtOnce) {
  for (const double clipping : {0.0, 1.0}) {
    JobSpec job = Job("in_order");
    job.mutable_training()->set_gradient_clipping(clipping);
    const TrainingRun want = Train(job, OptionsOf({.on_host = true}));
    ASSERT_TRUE(want.status().ok()) << want.status();
    for (const Reading& reading :
         {Reading{.late = false}, Reading{.late = true},
          Reading{.late = true, .trace_every = 3},
          Reading{.on_host = true, .late = true}}) {
      job.mutable_checkpoint()->set_directory(
          Job("late_in_order").checkpoint().directory());
      const TrainingRun run = Train(job, OptionsOf(reading));
      ASSERT_TRUE(run.status().ok()) << run.status();
      ExpectStepsInOrder(run, 20);
      EXPECT_EQ(run.checkpoints.size(), 4u);
      for (int rank = 0; rank < 2; ++rank) {
        for (int i = 0; i < 20; ++i) {
          const StepRecord& got = run.steps[rank][i];
          const StepRecord& same = want.steps[rank][i];
          EXPECT_EQ(got.loss(), same.loss());
          EXPECT_EQ(got.grad_norm(), same.grad_norm());
          EXPECT_EQ(got.samples_consumed(), same.samples_consumed());
          EXPECT_EQ(got.has_validation_loss(), same.has_validation_loss());
          EXPECT_EQ(got.validation_loss(), same.validation_loss());
        }
      }
    }
  }
}

// Copies of the state are those of a step that has ended.
TEST(LateSteps, AreReportedBeforeTheirStateIsCopied) {
  JobSpec job = Job("kept");
  job.mutable_training()->set_validate_every(0);
  job.clear_checkpoint();
  job.mutable_recovery()->set_every("3");
  const TrainingRun want = Train(job, OptionsOf({.on_host = true}));
  const TrainingRun run = Train(job, OptionsOf({.late = true}));
  ASSERT_TRUE(run.status().ok()) << run.status();
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(run.steps[rank].size(), 20u);
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(run.steps[rank][i].loss(), want.steps[rank][i].loss());
    }
  }
}

// Step 3 is reported when step 4 is started, so that the request is summed with
// step 5; that is read when step 6 is started.
TEST(LateSteps, ARequestEndsAllRanksAfterTheSameStep) {
  for (const int asked : {0, 1}) {
    JobSpec job = Job("stop");
    job.mutable_training()->set_steps(1'000'000);
    job.mutable_training()->set_validate_every(0);
    job.mutable_checkpoint()->set_every(0);
    TrainOptions options = OptionsOf({.late = true});
    options.on_step = [&](int rank, const StepRecord& record,
                          const std::vector<TrainLoop*>& loops) {
      if (rank == asked && record.step() == 3) {
        loops[rank]->RequestSaveAndStop();
      }
    };
    const TrainingRun run = Train(job, options);
    for (const absl::Status& status : run.statuses) {
      EXPECT_TRUE(absl::IsCancelled(status)) << status;
    }
    ExpectStepsInOrder(run, 6);
    const auto newest = FindNewestComplete(job.checkpoint().directory(),
                                           CheckDepth::kChecksums);
    ASSERT_TRUE(newest.ok()) << newest.status();
    EXPECT_EQ(newest->step, 6);
  }
}

// What follows a step that has diverged is not reported, and not saved.
TEST(LateSteps, AStepThatDivergesIsTheLast) {
  JobSpec job = Job("diverges");
  job.mutable_checkpoint()->set_every(10);
  job.mutable_training()->set_validate_every(0);
  job.mutable_training()->set_gradient_clipping(0);
  job.mutable_optimizer()->set_name("sgd");
  job.mutable_optimizer()->set_lr(1e4);
  job.mutable_lr_scheduler()->set_warmup_steps(0);
  const TrainingRun run = Train(job, OptionsOf({.late = true}));
  const TrainingRun want = Train(job, OptionsOf({}));
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(run.statuses[rank], want.statuses[rank]);
    EXPECT_TRUE(absl::StrContains(run.statuses[rank].message(), "diverged"));
    EXPECT_EQ(run.steps[rank].size(), want.steps[rank].size());
    EXPECT_LT(run.steps[rank].size(), 10u);
  }
  EXPECT_TRUE(run.checkpoints.empty());
  EXPECT_EQ(run.bytes_left, 0u);
}

// Whatever ends a rank, its steps before are reported, and all memory is back.
TEST(LateSteps, AnAbortEndsWhatIsUnderWay) {
  JobSpec job = Job("abort");
  job.clear_checkpoint();
  TrainOptions options = OptionsOf({.late = true});
  options.on_step = [&](int rank, const StepRecord& record,
                        const std::vector<TrainLoop*>& loops) {
    if (rank != 0 || record.step() != 3) return;
    loops[0]->Abort(absl::CancelledError("enough"));
  };
  const TrainingRun run = Train(job, options);
  EXPECT_EQ(run.statuses[0], absl::CancelledError("enough"));
  EXPECT_FALSE(run.statuses[1].ok());
  for (size_t i = 0; i < run.steps[0].size(); ++i) {
    EXPECT_EQ(run.steps[0][i].step(), static_cast<int64_t>(i) + 1);
  }
  EXPECT_GE(run.steps[0].size(), 3u);
  EXPECT_LE(run.steps[0].size(), 4u);
  EXPECT_EQ(run.bytes_left, 0u);
}

}  // namespace
}  // namespace troupe
