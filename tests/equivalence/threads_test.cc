// A rank trains the same model on any number of threads, also where OpenMP
// grants fewer than the rank's device asks for: held tests of BUILD.bazel run
// this under each of its settings.
#include <cmath>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/small_job.h"

namespace troupe {
namespace {

class ThreadsTest : public testing::TestWithParam<std::string> {};

// Large enough that each op wakes three threads.
JobSpec WideJob(const std::string& precision) {
  JobSpec job = SmallJob();
  job.mutable_model()->set_hidden_size(192);
  job.mutable_model()->set_max_position_embeddings(64);
  TrainingSpec& training = *job.mutable_training();
  training.set_sequence_length(64);
  training.set_steps(3);
  training.set_validate_every(0);
  training.set_precision(precision);
  return job;
}

TrainingRun TrainOn(int threads, const JobSpec& job) {
  return Train(job, {.new_device = [threads] {
                 return NewCpuDevice({.threads = threads});
               }});
}

TEST_P(ThreadsTest, TrainTheModelThatOneTrains) {
  const JobSpec job = WideJob(GetParam());
  const TrainingRun alone = TrainOn(1, job);
  const TrainingRun together = TrainOn(3, job);
  ASSERT_TRUE(alone.status().ok()) << alone.status();
  ASSERT_TRUE(together.status().ok()) << together.status();
  const double error_max = GetParam() == "f32" ? 1e-5 : 1e-3;
  for (int64_t i = 0; i < job.training().steps(); ++i) {
    const StepRecord& want = alone.steps[0][i];
    const StepRecord& got = together.steps[0][i];
    EXPECT_NEAR(got.loss() / want.loss(), 1, error_max)
        << "step " << got.step();
    EXPECT_NEAR(got.grad_norm() / want.grad_norm(), 1, 10 * error_max)
        << "step " << got.step();
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, ThreadsTest,
                         testing::Values("f32", "bf16"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace troupe
