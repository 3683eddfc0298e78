// A job of units that wait instead of computing runs as any other, without data
// and without an optimizer: its loss is 0, and its steps take the time that the
// units were given.
#include "gtest/gtest.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/pipeline_job.h"

namespace troupe {
namespace {

constexpr int kUnits = 8;
constexpr int kMicroBatches = 4;
constexpr int kForwardUs = 500;

JobSpec SyntheticJob() {
  JobSpec job;
  job.set_name("synthetic");
  ModelSpec& model = *job.mutable_model();
  model.set_architecture("synthetic");
  model.set_units(kUnits);
  model.add_forward_us(kForwardUs);
  for (int u = 0; u < kUnits; ++u) model.add_activation_bytes(100 * u);
  TrainingSpec& training = *job.mutable_training();
  training.set_steps(3);
  training.set_global_batch_size(2 * kMicroBatches);
  training.set_micro_batch_size(1);
  return job;
}

class Synthetic : public testing::TestWithParam<PipelineCut> {};

TEST_P(Synthetic, StepsTakeTheirTime) {
  JobSpec job = CutJob(SyntheticJob(), GetParam());
  const int data = GetParam().data;
  job.mutable_training()->set_global_batch_size(data * kMicroBatches);
  const TrainingRun run = Train(job, {.ranks = GetParam().ranks()});
  ASSERT_TRUE(run.status().ok()) << run.status();
  // Of forward and both parts of backward, on the rank that has the most.
  const double work =
      3e-6 * kForwardUs * kMicroBatches * kUnits / GetParam().pipeline;
  for (const std::vector<StepRecord>& steps : run.steps) {
    ASSERT_EQ(steps.size(), 3u);
    for (const StepRecord& step : steps) {
      EXPECT_EQ(step.loss(), 0);
      EXPECT_EQ(step.grad_norm(), 0);
      EXPECT_EQ(step.samples_consumed(), step.step() * data * kMicroBatches);
      // Another rank may be behind; the rank itself cannot be faster.
      EXPECT_GE(step.step_seconds(), 0.99 * work);
    }
  }
  EXPECT_EQ(run.bytes_left, 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Schedules, Synthetic,
    testing::Values(PipelineCut{.schedule = "naive", .pipeline = 1},
                    PipelineCut{.schedule = "gpipe", .pipeline = 8},
                    PipelineCut{.schedule = "1f1b", .pipeline = 4, .data = 2},
                    PipelineCut{.schedule = "chimera", .pipeline = 4},
                    PipelineCut{.schedule = "zb_v", .pipeline = 4},
                    PipelineCut{.schedule = "pipedream", .pipeline = 4}),
    [](const auto& info) { return info.param.schedule; });

TEST(SyntheticModel, ParametersMayBeSteppedAndSaved) {
  JobSpec job = SyntheticJob();
  for (int u = 0; u < kUnits; ++u) {
    job.mutable_model()->add_parameter_bytes(u % 3 == 1 ? 0 : 4 * u);
  }
  job.mutable_optimizer()->set_name("adamw");
  job.mutable_optimizer()->set_lr(1e-3);
  job.mutable_checkpoint()->set_directory(testing::TempDir() + "/synthetic");
  const PipelineCut cut = {.schedule = "1f1b", .pipeline = 2, .data = 2};
  const TrainingRun run = Train(CutJob(job, cut), {.ranks = cut.ranks()});
  ASSERT_TRUE(run.status().ok()) << run.status();
  ASSERT_EQ(run.checkpoints.size(), 1u);
  EXPECT_EQ(run.checkpoints[0].step(), 3);
}

}  // namespace
}  // namespace troupe
