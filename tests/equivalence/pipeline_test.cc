// The promise, for pipelines: every synchronous schedule of the table trains
// the model that a single rank trains, however many stages, replicas and
// micro-batches there are.
#include <tuple>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "scheduler/pipelines/pipelines.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/pipeline_job.h"
#include "tests/equivalence/same_training.h"
#include "tests/equivalence/small_job.h"

namespace troupe {
namespace {

std::vector<std::string> SynchronousSchedules() {
  std::vector<std::string> names;
  for (const Pipeline& pipeline : Pipelines()) {
    if (!pipeline.asynchronous) names.emplace_back(pipeline.name);
  }
  return names;
}

// Of the ones above, those whose ranks may be in different steps at once.
std::vector<std::string> OverlappingSchedules() {
  std::vector<std::string> names;
  for (const Pipeline& pipeline : Pipelines()) {
    if (pipeline.overlaps_steps) names.emplace_back(pipeline.name);
  }
  return names;
}

// Schedule, architecture, tied, dropout, data, pipeline.
using Case = std::tuple<std::string, std::string, bool, double, int, int>;

class EverySchedule : public testing::TestWithParam<Case> {};

TEST_P(EverySchedule, TrainsTheSameModel) {
  const auto& [schedule, architecture, tied, dropout, data, pipeline] =
      GetParam();
  const JobSpec job = WithFewSteps(PipelineJob(
      {.architecture = architecture, .tied = tied, .dropout = dropout}));
  const TrainingRun& reference = OneRank(job);
  ASSERT_TRUE(reference.status().ok()) << reference.status();
  EXPECT_LT(reference.steps[0].back().loss(),
            reference.steps[0][0].loss() - 0.05);
  const PipelineCut cut = {
      .schedule = schedule, .pipeline = pipeline, .data = data};
  ExpectSameTraining(Train(CutJob(job, cut), {.ranks = cut.ranks()}),
                     reference);
}

std::string CaseName(const testing::TestParamInfo<Case>& info) {
  const auto& [schedule, architecture, tied, dropout, data, pipeline] =
      info.param;
  return absl::StrCat(schedule, "_", architecture, tied ? "_tied" : "_untied",
                      dropout > 0 ? "_dropout" : "", "_", pipeline, "x", data);
}

INSTANTIATE_TEST_SUITE_P(
    InProcess, EverySchedule,
    testing::Combine(testing::ValuesIn(SynchronousSchedules()),
                     testing::Values("gpt2", "llama"), testing::Bool(),
                     testing::Values(0.0, 0.1), testing::Values(1, 2),
                     testing::Values(2, 4)),
    CaseName);

class OneSchedule : public testing::TestWithParam<std::string> {};

TEST_P(OneSchedule, TakesStagesThatAreUneven) {
  const JobSpec job = WithFewSteps(PipelineJob({.dropout = 0.1}));
  const TrainingRun& reference = OneRank(job);
  const auto pipeline = FindPipeline(GetParam());
  ASSERT_TRUE(pipeline.ok());
  PipelineCut cut = {.schedule = GetParam(), .stages = {5, 3}};
  if (pipeline->default_virtual_stages == 2) cut.stages = {1, 4, 2, 1};
  ExpectSameTraining(Train(CutJob(job, cut), {.ranks = 2}), reference);
}

TEST_P(OneSchedule, TrainsTheSameModelInBf16ButForItsRounding) {
  JobSpec job = WithFewSteps(PipelineJob({}));
  job.mutable_training()->set_precision("bf16");
  const TrainingRun& reference = OneRank(job);
  const PipelineCut cut = {.schedule = GetParam(), .pipeline = 4};
  ExpectSameTraining(Train(CutJob(job, cut), {.ranks = 4}), reference, 1e-2);
}

TEST_P(OneSchedule, TakesAThirdStageWhereItCan) {
  // Chimera's pipelines go both ways, and so have an even number of ranks.
  if (GetParam() == "chimera") return;
  JobSpec job =
      WithFewSteps(PipelineJob({.architecture = "llama", .tied = true}));
  job.mutable_training()->set_global_batch_size(9);
  const TrainingRun& reference = OneRank(job);
  const PipelineCut cut = {.schedule = GetParam(), .pipeline = 3};
  ExpectSameTraining(Train(CutJob(job, cut), {.ranks = 3}), reference);
}

INSTANTIATE_TEST_SUITE_P(InProcess, OneSchedule,
                         testing::ValuesIn(SynchronousSchedules()),
                         [](const auto& info) { return info.param; });

class Overlapping : public testing::TestWithParam<std::string> {};

// Without a norm to wait for, no rank waits for another between steps.
TEST_P(Overlapping, TrainsTheSameModelWithoutABarrierBetweenSteps) {
  JobSpec job = WithFewSteps(PipelineJob({.dropout = 0.1}));
  job.mutable_training()->set_gradient_clipping(0);
  const TrainingRun& reference = OneRank(job);
  for (const int data : {1, 2}) {
    const PipelineCut cut = {
        .schedule = GetParam(), .pipeline = 4, .data = data};
    const TrainingRun run = Train(CutJob(job, cut), {.ranks = cut.ranks()});
    ExpectSameTraining(run, reference);
    EXPECT_GT(run.plan.derived().report_lag(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(InProcess, Overlapping,
                         testing::ValuesIn(OverlappingSchedules()),
                         [](const auto& info) { return info.param; });

TEST(Pipelines, TrainTheSameModelOverGloo) {
  const JobSpec job = WithFewSteps(PipelineJob({.dropout = 0.1}));
  const TrainingRun& reference = OneRank(job);
  const PipelineCut cut = {.schedule = "1f1b", .pipeline = 2, .data = 2};
  ExpectSameTraining(
      Train(CutJob(job, cut), {.ranks = cut.ranks(), .backend = "gloo"}),
      reference);
}

TEST(Pipelines, TakeSeveralVirtualStages) {
  const JobSpec job =
      WithFewSteps(PipelineJob({.architecture = "llama", .tied = false}));
  const TrainingRun& reference = OneRank(job);
  for (const int virtual_stages : {3, 4}) {
    const PipelineCut cut = {.schedule = "interleaved_1f1b",
                             .pipeline = 2,
                             .virtual_stages = virtual_stages};
    ExpectSameTraining(Train(CutJob(job, cut), {.ranks = 2}), reference);
  }
}

TEST(Pipelines, SgdWithMomentumTrainsTheSameModel) {
  JobSpec job = WithFewSteps(PipelineJob({}));
  job.mutable_optimizer()->set_name("sgd");
  job.mutable_optimizer()->set_momentum(0.9);
  job.mutable_optimizer()->set_lr(0.1);
  const TrainingRun& reference = OneRank(job);
  const PipelineCut cut = {.schedule = "1f1b", .pipeline = 4};
  ExpectSameTraining(Train(CutJob(job, cut), {.ranks = 4}), reference);
}

}  // namespace
}  // namespace troupe
