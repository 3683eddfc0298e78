// Asynchronous schedules do not train the model that a single rank trains:
// their gradients are late. They train, to rounding, the one that the papers'
// versions of the weights give, computed plainly in delayed_gradients.h.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <ostream>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/plan/sums.h"
#include "scheduler/layouts/replicas.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/delayed_gradients.h"
#include "tests/equivalence/pipeline_job.h"
#include "tests/equivalence/same_training.h"
#include "tests/equivalence/small_job.h"
#include "tests/equivalence/tensor_job.h"

namespace troupe {
namespace {

struct Schedule {
  std::string name;
  bool vertical_sync = false;
  int micro_batch = 1;  // sequences

  std::string Name() const {
    return absl::StrCat(name, vertical_sync ? "_synced" : "", "_b",
                        micro_batch);
  }
};
std::ostream& operator<<(std::ostream& out, const Schedule& schedule) {
  return out << schedule.Name();
}

// Rounds down, also below zero.
int64_t FloorDiv(int64_t a, int64_t b) {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

// The versions that the papers prescribe, for P stages and optimizer steps of M
// micro-batches, numbered on from step to step.
//
// PipeDream, section 3: when stage i of P takes micro-batch n forward, it has
// last taken n - (P - 1 - i) - 1 backward; it uses the weights that it has
// then, of all steps whose last micro-batch that or an earlier one is, and
// stashes them for the backward pass. Vertical sync, section 3.4: on all stages
// those that the first one used.
//
// PipeDream-2BW, section 3.1: all micro-batches of a step use the weights from
// before the step before it.
std::function<int64_t(const Occasion&)> Versions(const Schedule& schedule,
                                                 int stages,
                                                 int micro_batches) {
  if (schedule.name == "pipedream_2bw") {
    return [](const Occasion& occasion) { return occasion.step - 1; };
  }
  return [=](const Occasion& occasion) {
    const int stage = schedule.vertical_sync ? 0 : occasion.stage;
    const int64_t number = occasion.step * micro_batches + occasion.micro_batch;
    const int64_t taken_back = number - (stages - 1 - stage);
    return FloorDiv(taken_back, micro_batches);
  };
}

JobSpec AsynchronousJob(const PipelineModel& model, const Schedule& schedule,
                        const PipelineCut& cut) {
  JobSpec job = CutJob(PipelineJob(model), cut);
  job.mutable_training()->set_validate_every(0);
  job.mutable_training()->set_micro_batch_size(schedule.micro_batch);
  if (schedule.vertical_sync) {
    job.mutable_parallelism()->set_vertical_sync(true);
  }
  return job;
}

std::vector<DelayedStep> ReferenceOf(const TrainingRun& run,
                                     const Schedule& schedule,
                                     std::vector<int64_t> restarts = {}) {
  const JobSpec& job = run.plan.job();
  DelayedTraining training = {.job = job, .restarts = std::move(restarts)};
  // Ranks that share experts have one micro-batch together, and so a replica.
  training.job.mutable_training()->set_micro_batch_size(
      MicroBatchSequences(job));
  training.job.mutable_parallelism()->set_data(ReplicasOf(job.parallelism()));
  for (const Stage& stage : run.plan.stages()) {
    training.stage_units.push_back(stage.unit_count());
  }
  training.version =
      Versions(schedule, run.plan.stages_size(),
               static_cast<int>(run.plan.derived().micro_batches()));
  return TrainWithDelays(training);
}

void ExpectSteps(const std::vector<StepRecord>& steps,
                 const std::vector<DelayedStep>& reference,
                 const Tolerance& tolerance = kRelativeError) {
  for (const StepRecord& step : steps) {
    const DelayedStep& want = reference.at(step.step() - 1);
    EXPECT_LE(std::abs(step.loss() - want.loss), tolerance.losses * want.loss)
        << "loss of step " << step.step() << ": " << step.loss() << ", not "
        << want.loss;
    EXPECT_LE(std::abs(step.grad_norm() - want.gradient_norm),
              tolerance.norms * want.gradient_norm)
        << "gradient norm of step " << step.step() << ": " << step.grad_norm()
        << ", not " << want.gradient_norm;
  }
}

// Schedule, stages, optimizer.
using Case = std::tuple<Schedule, int, std::string>;

class Asynchronous : public testing::TestWithParam<Case> {
 protected:
  // Trains the job with this model and compares; returns the run.
  static void ExpectPrescribed(const PipelineModel& model, int data) {
    const auto& [schedule, pipeline, optimizer] = GetParam();
    const PipelineCut cut = {
        .schedule = schedule.name, .pipeline = pipeline, .data = data};
    JobSpec job = WithFewSteps(AsynchronousJob(model, schedule, cut));
    job.mutable_training()->set_validate_every(0);
    job.mutable_optimizer()->set_name(optimizer);
    if (optimizer == "sgd") {
      job.mutable_optimizer()->set_momentum(0.9);
      job.mutable_optimizer()->set_lr(0.05);
    }
    const TrainingRun run = Train(job, {.ranks = cut.ranks()});
    ASSERT_TRUE(run.status().ok()) << run.status();
    const std::vector<DelayedStep> reference = ReferenceOf(run, schedule);
    EXPECT_LT(reference.back().loss, reference.front().loss);
    for (const std::vector<StepRecord>& steps : run.steps) {
      ASSERT_EQ(steps.size(), reference.size());
      for (size_t i = 0; i < steps.size(); ++i) {
        EXPECT_EQ(steps[i].step(), static_cast<int64_t>(i) + 1);
      }
      ExpectSteps(steps, reference);
    }
    EXPECT_EQ(run.bytes_left, 0u);
  }
};

TEST_P(Asynchronous, TrainsATiedGpt2AsThePaperPrescribes) {
  ExpectPrescribed({.architecture = "gpt2", .tied = true, .dropout = 0.1}, 1);
}

TEST_P(Asynchronous, TrainsALlamaAsThePaperPrescribes) {
  ExpectPrescribed({.architecture = "llama", .tied = false}, 1);
}

std::string CaseName(const testing::TestParamInfo<Case>& info) {
  const auto& [schedule, pipeline, optimizer] = info.param;
  return absl::StrCat(schedule.Name(), "_", pipeline, "_", optimizer);
}

// Steps of 8, 2 and 1 micro-batches; PipeDream-2BW needs as many of them as
// there are stages.
INSTANTIATE_TEST_SUITE_P(
    InProcess, Asynchronous,
    testing::Combine(testing::Values(Schedule{"pipedream"},
                                     Schedule{"pipedream", false, 4},
                                     Schedule{"pipedream", false, 8},
                                     Schedule{"pipedream", true},
                                     Schedule{"pipedream", true, 4},
                                     Schedule{"pipedream", true, 8},
                                     Schedule{"pipedream_2bw"},
                                     Schedule{"pipedream_2bw", false, 2}),
                     testing::Values(2, 4), testing::Values("adamw", "sgd")),
    CaseName);

double LargestDifference(const std::vector<DelayedStep>& a,
                         const std::vector<DelayedStep>& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(a[i].loss / b[i].loss - 1));
  }
  return largest;
}

class AnySchedule : public testing::TestWithParam<Schedule> {};

TEST_P(AnySchedule, TrainsReplicasAsThePaperPrescribes) {
  const Schedule& schedule = GetParam();
  const PipelineCut cut = {
      .schedule = schedule.name, .pipeline = 3, .data = 2, .stages = {1, 4, 3}};
  const TrainingRun run = Train(
      AsynchronousJob({.dropout = 0.1}, schedule, cut), {.ranks = cut.ranks()});
  ASSERT_TRUE(run.status().ok()) << run.status();
  const std::vector<DelayedStep> reference = ReferenceOf(run, schedule);
  for (const auto& steps : run.steps) {
    ASSERT_EQ(steps.size(), 20u);
    ExpectSteps(steps, reference);
  }
  // Which the rounding error does not hide: other versions, other losses.
  DelayedTraining other = {.job = run.plan.job(), .stage_units = {1, 4, 3}};
  other.version = [](const Occasion& occasion) { return occasion.step; };
  EXPECT_GT(LargestDifference(reference, TrainWithDelays(other)),
            10 * kRelativeError);
  const Schedule another = {.name = "pipedream",
                            .vertical_sync = !schedule.vertical_sync,
                            .micro_batch = schedule.micro_batch};
  EXPECT_GT(LargestDifference(reference, ReferenceOf(run, another)),
            10 * kRelativeError);
}

// Programs of other kinds find the newest weights, and leave alone what is
// under way.
TEST_P(AnySchedule, IsNotDisturbedByValidationsAndCheckpoints) {
  const Schedule& schedule = GetParam();
  const PipelineCut cut = {.schedule = schedule.name, .pipeline = 4};
  JobSpec job = AsynchronousJob({.dropout = 0.1}, schedule, cut);
  const TrainingRun plain = Train(job, {.ranks = 4});
  ASSERT_TRUE(plain.status().ok()) << plain.status();

  job.mutable_training()->set_validate_every(3);
  const std::string directory =
      absl::StrCat(testing::TempDir(), "/disturbed_", schedule.Name());
  std::filesystem::remove_all(directory);
  job.mutable_checkpoint()->set_directory(directory);
  job.mutable_checkpoint()->set_every(4);
  job.mutable_checkpoint()->set_keep(0);
  const TrainingRun disturbed = Train(job, {.ranks = 4});
  ASSERT_TRUE(disturbed.status().ok()) << disturbed.status();
  ASSERT_EQ(disturbed.steps[0].size(), 20u);
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(disturbed.steps[0][i].loss(), plain.steps[0][i].loss());
    EXPECT_EQ(disturbed.steps[0][i].has_validation_loss(),
              (i + 1) % 3 == 0 || i + 1 == 20);
  }

  // What was validated after step 12 is what the checkpoint of step 12 holds:
  // a synchronous run of one step, with a rate of 0, validates the same.
  JobSpec one = PipelineJob({.dropout = 0.1});
  one.mutable_training()->set_stop_after(13);
  one.mutable_training()->set_validate_every(1);
  one.mutable_optimizer()->set_lr(1e-30);
  one.mutable_optimizer()->set_weight_decay(0);
  const TrainingRun after =
      Train(one, {.resume = absl::StrCat(directory, "/step-00000012")});
  ASSERT_TRUE(after.status().ok()) << after.status();
  const double validated = disturbed.steps[0][11].validation_loss();
  EXPECT_NEAR(after.steps[0][0].validation_loss(), validated,
              kRelativeError * validated);
}

// A checkpoint holds the newest weights: the pipeline is filled with those, and
// delays begin anew.
TEST_P(AnySchedule, FillsThePipelineAgainWhenItResumes) {
  const Schedule& schedule = GetParam();
  const PipelineCut cut = {.schedule = schedule.name, .pipeline = 4};
  JobSpec job = AsynchronousJob({.dropout = 0.1}, schedule, cut);
  const std::string directory =
      absl::StrCat(testing::TempDir(), "/resumed_", schedule.Name());
  std::filesystem::remove_all(directory);
  job.mutable_checkpoint()->set_directory(directory);
  job.mutable_training()->set_stop_after(7);
  const TrainingRun first = Train(job, {.ranks = 4});
  ASSERT_TRUE(first.status().ok()) << first.status();
  EXPECT_EQ(first.steps[0].size(), 7u);
  job.mutable_training()->clear_stop_after();
  const TrainingRun second = Train(job, {.ranks = 4, .resume = "latest"});
  ASSERT_TRUE(second.status().ok()) << second.status();
  EXPECT_EQ(second.steps[0].size(), 13u);
  const std::vector<DelayedStep> reference =
      ReferenceOf(second, schedule, /*restarts=*/{7});
  ExpectSteps(first.steps[0], reference);
  ExpectSteps(second.steps[0], reference);
}

// Routers add to the sums of steps that are ahead. Steps that validate are
// summed by another program.
TEST(AsynchronousExperts, TrainAndReportAsThePaperPrescribes) {
  const Schedule schedule = {"pipedream"};
  JobSpec whole = WithFewSteps(
      TensorJob({.architecture = "mixtral", .tied = false, .micro_batch = 1}));
  whole.mutable_training()->set_gradient_clipping(0);
  for (const JobCut& cut :
       {JobCut{.pipeline = 2}, JobCut{.tensor = 2, .pipeline = 2},
        JobCut{.pipeline = 2, .context = 2},
        JobCut{.pipeline = 2, .data = 2, .expert = 2},
        JobCut{.tensor = 2, .sequence = true, .pipeline = 2, .expert = 2}}) {
    SCOPED_TRACE(absl::StrCat("tensor ", cut.tensor, ", context ", cut.context,
                              ", data ", cut.data, ", expert ", cut.expert));
    JobSpec job = CutJob(whole, cut);
    job.mutable_parallelism()->set_pipeline_schedule(schedule.name);
    const TrainingRun run = Train(job, {.ranks = cut.ranks()});
    ASSERT_TRUE(run.status().ok()) << run.status();
    const std::vector<DelayedStep> reference = ReferenceOf(run, schedule);
    for (const std::vector<StepRecord>& steps : run.steps) {
      ASSERT_EQ(steps.size(), reference.size());
      ExpectSteps(steps, reference, {1e-5, 1e-4});
    }
    // Of each token, in each layer, two choices are counted.
    const Plan& plan = run.plan;
    for (const std::vector<double>& sums : run.sums[0]) {
      double choices = 0;
      for (const Sum& sum : plan.sums()) {
        if (sum.name() != kExpertTokensSum) continue;
        const SumPlace place = PlaceOfSum(plan, sum.name(), sum.unit());
        for (int64_t i = 0; i < place.elements; ++i) {
          choices += sums.at(place.first + i);
        }
      }
      EXPECT_EQ(choices, 2 * job.model().num_hidden_layers() *
                             job.training().global_batch_size() *
                             job.training().sequence_length());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(InProcess, AnySchedule,
                         testing::Values(Schedule{"pipedream"},
                                         Schedule{"pipedream", false, 4},
                                         Schedule{"pipedream", true},
                                         Schedule{"pipedream_2bw"}),
                         [](const auto& info) { return info.param.Name(); });

}  // namespace
}  // namespace troupe
