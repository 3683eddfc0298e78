// The promise, for replicas that run different numbers of micro-batches in a
// step: the model that a single rank trains, however the step's samples are
// split, with all else that a plan may have.
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "scheduler/pipelines/pipelines.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/pipeline_job.h"
#include "tests/equivalence/same_training.h"
#include "tests/equivalence/small_job.h"
#include "tests/equivalence/tensor_job.h"

namespace troupe {
namespace {

const Tolerance kInside(1e-5, 1e-4);  // where units are cut

JobSpec Split(JobSpec job, const std::vector<int>& micro_batches) {
  for (const int count : micro_batches) {
    job.mutable_parallelism()->add_micro_batches(count);
  }
  return job;
}

struct UnevenCase {
  const char* name;
  std::vector<int> micro_batches;  // of 12 in a step
  JobCut cut;
  std::string precision = "f32";
  std::string recompute;
  std::string optimizer = "device";
  std::string activations = "device";
};

class Uneven : public testing::TestWithParam<UnevenCase> {};

TEST_P(Uneven, TrainsTheSameModel) {
  const UnevenCase& uneven = GetParam();
  JobSpec job = TensorJob({.dropout = 0.1});
  TrainingSpec& training = *job.mutable_training();
  training.set_precision(uneven.precision);
  training.set_micro_batch_size(1);
  training.set_global_batch_size(12);
  training.set_steps(6);
  job.mutable_data()->set_validation_fraction(0.1);
  training.set_validate_every(3);
  training.set_validation_sequences(13);
  const TrainingRun& reference = OneRank(job);
  ASSERT_TRUE(reference.status().ok()) << reference.status();
  job = Split(CutJob(job, uneven.cut), uneven.micro_batches);
  job.mutable_parallelism()->set_bucket_megabytes(0.02);
  MemorySpec& memory = *job.mutable_memory();
  memory.set_optimizer(uneven.optimizer);
  memory.set_activations(uneven.activations);
  if (!uneven.recompute.empty()) {
    memory.mutable_recompute()->set_mode(uneven.recompute);
  }
  const TrainingRun run = Train(job, {.ranks = uneven.cut.ranks()});
  ExpectSameTraining(run, reference,
                     uneven.precision == "f32" ? kInside : Tolerance(1e-2));
}

INSTANTIATE_TEST_SUITE_P(
    InProcess, Uneven,
    testing::Values(
        UnevenCase{"replicas", {9, 3}, {.data = 2}},
        UnevenCase{"idle_almost", {11, 1}, {.data = 2}},
        UnevenCase{"zero", {3, 9}, {.data = 2, .zero = 1}},
        UnevenCase{"two_kinds", {4, 2, 2, 4}, {.data = 4, .zero = 1}},
        UnevenCase{"zero_in_pairs",
                   {4, 2, 1, 5},
                   {.data = 4, .zero = 1, .zero_size = 2}},
        UnevenCase{"tensor", {8, 4}, {.tensor = 2, .data = 2}},
        UnevenCase{"sequence",
                   {8, 4},
                   {.tensor = 2, .sequence = true, .data = 2, .zero = 1}},
        UnevenCase{"context", {5, 7}, {.data = 2, .zero = 1, .context = 2}},
        UnevenCase{"ring",
                   {5, 7},
                   {.data = 2, .context = 2, .context_method = "ring"}},
        // Slices over the ranks of a sequence, which are of one replica.
        UnevenCase{"zero_3_of_context",
                   {5, 7},
                   {.data = 2, .zero = 3, .zero_size = 2, .context = 2}},
        UnevenCase{"zero_2_of_context",
                   {5, 7},
                   {.data = 2, .zero = 2, .zero_size = 2, .context = 2}},
        UnevenCase{"pipeline", {9, 3}, {.pipeline = 2, .data = 2, .zero = 1}},
        UnevenCase{
            "all", {9, 3}, {.tensor = 2, .pipeline = 2, .data = 2, .zero = 1}},
        UnevenCase{"bf16", {9, 3}, {.pipeline = 2, .data = 2}, "bf16"},
        UnevenCase{
            "recompute", {9, 3}, {.pipeline = 2, .data = 2}, "f32", "full"},
        UnevenCase{"host",
                   {9, 3},
                   {.data = 2, .zero = 1},
                   "f32",
                   "selective",
                   "host",
                   "host"}),
    [](const auto& info) { return std::string(info.param.name); });

class UnevenSchedule : public testing::TestWithParam<std::string> {};

// With clipping and without, where some schedules overlap steps elsewhere.
TEST_P(UnevenSchedule, TrainsTheSameModel) {
  for (const double clipping : {1.0, 0.0}) {
    for (const int zero : {0, 1}) {
      JobSpec job = WithFewSteps(PipelineJob({.dropout = 0.1}));
      job.mutable_training()->set_gradient_clipping(clipping);
      const TrainingRun& reference = OneRank(job);
      const PipelineCut cut = {.schedule = GetParam(), .data = 2};
      job = Split(CutJob(job, cut), {6, 2});
      job.mutable_parallelism()->set_zero(zero);
      ExpectSameTraining(Train(job, {.ranks = cut.ranks()}), reference);
    }
  }
}

std::vector<std::string> SynchronousSchedules() {
  std::vector<std::string> names;
  for (const Pipeline& pipeline : Pipelines()) {
    if (!pipeline.asynchronous) names.emplace_back(pipeline.name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(InProcess, UnevenSchedule,
                         testing::ValuesIn(SynchronousSchedules()),
                         [](const auto& info) { return info.param; });

// The data position counts samples: any split goes on from any other's
// checkpoint.
TEST(UnevenReplicas, ContinueWhatAnotherSplitBegan) {
  const std::string directory =
      absl::StrCat(testing::TempDir(), "/uneven_pieces");
  std::filesystem::remove_all(directory);
  JobSpec job = PipelineJob({.dropout = 0.1});
  job.mutable_training()->set_validate_every(0);
  const TrainingRun whole = Train(job, {});
  ASSERT_TRUE(whole.status().ok()) << whole.status();
  job.mutable_checkpoint()->set_directory(directory);
  const std::vector<std::vector<int>> splits = {{5, 3}, {}, {1, 7}, {2, 3, 3}};
  const int64_t steps = job.training().steps();
  int64_t done = 0;
  for (size_t i = 0; i < splits.size(); ++i) {
    SCOPED_TRACE(absl::StrJoin(splits[i], "+"));
    const int data = splits[i].empty() ? 1 : static_cast<int>(splits[i].size());
    const PipelineCut cut = {.schedule = "1f1b", .data = data};
    JobSpec part = Split(CutJob(job, cut), splits[i]);
    part.mutable_parallelism()->set_zero(data > 1 ? 1 : 0);
    const int64_t end = steps * static_cast<int64_t>(i + 1) /
                        static_cast<int64_t>(splits.size());
    part.mutable_training()->set_stop_after(end);
    const TrainingRun run =
        Train(part, {.ranks = cut.ranks(), .resume = done > 0 ? "latest" : ""});
    ASSERT_TRUE(run.status().ok()) << run.status();
    for (const std::vector<StepRecord>& records : run.steps) {
      ASSERT_EQ(records.size(), static_cast<size_t>(end - done));
      ExpectSameSteps(records, whole.steps[0]);
    }
    done = end;
  }
}

}  // namespace
}  // namespace troupe
