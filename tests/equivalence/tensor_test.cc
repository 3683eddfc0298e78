// The promise, for what is cut inside units: tensor and sequence parallelism
// train the model that a single rank trains.
#include <filesystem>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "proto/base/philox.h"
#include "scheduler/pipelines/pipelines.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/in_pieces.h"
#include "tests/equivalence/same_training.h"
#include "tests/equivalence/small_job.h"
#include "tests/equivalence/state_difference.h"
#include "tests/equivalence/tensor_job.h"
#include "tests/equivalence/tensor_matrix.h"

namespace troupe {
namespace {

const Tolerance kTolerance(1e-5, 1e-4);

std::string NewDirectory(const std::string& name) {
  const std::string directory = absl::StrCat(testing::TempDir(), "/", name);
  std::filesystem::remove_all(directory);
  return directory;
}

// Architecture, tensor, sequence parallel. Every other case has tied tables,
// and every other one dropout.
using Case = std::tuple<std::string, int, bool>;
bool IsTied(const Case& c) {
  return (std::get<1>(c) + std::get<2>(c)) % 2 == 0;
}

double Dropout(const Case& c) { return std::get<1>(c) % 4 == 0 ? 0.1 : 0; }

class TensorParallel : public testing::TestWithParam<Case> {};

TEST_P(TensorParallel, TrainsTheSameModel) {
  const auto& [architecture, tensor, sequence] = GetParam();
  JobSpec job =
      WithFewSteps(TensorJob({.architecture = architecture,
                              .tied = IsTied(GetParam()),
                              .dropout = Dropout(GetParam()),
                              .key_value_heads = tensor == 3 ? 3 : 2}));
  const TrainingRun& reference = OneRank(job);
  ASSERT_TRUE(reference.status().ok()) << reference.status();
  EXPECT_LT(reference.steps[0].back().loss(),
            reference.steps[0][0].loss() - 0.1);
  job.mutable_parallelism()->set_tensor(tensor);
  job.mutable_parallelism()->set_sequence_parallel(sequence);
  ExpectSameTraining(Train(job, {.ranks = tensor}), reference, kTolerance);
}

std::string CaseName(const testing::TestParamInfo<Case>& info) {
  const auto& [architecture, tensor, sequence] = info.param;
  return absl::StrCat(architecture, IsTied(info.param) ? "_tied" : "_untied",
                      Dropout(info.param) > 0 ? "_dropout" : "", "_", tensor,
                      sequence ? "_sequence" : "");
}

INSTANTIATE_TEST_SUITE_P(
    InProcess, TensorParallel,
    testing::Combine(testing::Values("gpt2", "gpt_neox", "llama", "mistral",
                                     "qwen2", "qwen3", "mixtral", "qwen2_moe",
                                     "qwen3_moe", "olmoe", "deepseek_v3"),
                     testing::Values(2, 3, 4, 8), testing::Bool()),
    CaseName);

// Of the matrix, for each schedule with and without sequence parallelism, one
// that is drawn.
std::vector<TensorConfiguration> SomeOfTheMatrix() {
  std::map<std::pair<std::string, bool>, std::vector<TensorConfiguration>> all;
  for (const TensorConfiguration& configuration : TensorMatrix()) {
    const JobCut& cut = configuration.cut;
    if (cut.pipeline == 1) continue;
    all[{cut.schedule, cut.sequence}].push_back(configuration);
  }
  std::vector<TensorConfiguration> some;
  for (const auto& [_, configurations] : all) {
    const uint32_t draw = PhiloxUint32(
        {.seed = 13, .purpose = RandomPurpose::kSampling}, some.size());
    some.push_back(configurations[draw % configurations.size()]);
  }
  return some;
}

class TensorInAnyPlan : public testing::TestWithParam<TensorConfiguration> {};

TEST_P(TensorInAnyPlan, TrainsTheSameModel) {
  ReferenceRuns references;
  const auto difference = TrainBesideOneRank(GetParam(), references);
  ASSERT_TRUE(difference.ok()) << difference.status();
  EXPECT_TRUE(difference->IsRounding())
      << "losses " << difference->losses << ", norms " << difference->norms
      << ", weights " << difference->weights;
}

INSTANTIATE_TEST_SUITE_P(
    InProcess, TensorInAnyPlan, testing::ValuesIn(SomeOfTheMatrix()),
    [](const auto& info) {
      return absl::StrReplaceAll(info.param.name(), {{", ", "_"}, {" ", ""}});
    });

// Schedules that use older weights are compared with themselves.
using Hybrid = std::tuple<std::string, bool>;

class TensorInAsynchronousPipeline : public testing::TestWithParam<Hybrid> {};

TEST_P(TensorInAsynchronousPipeline, TrainsTheSameModel) {
  const auto& [schedule, sequence] = GetParam();
  JobSpec job =
      WithFewSteps(TensorJob({.architecture = sequence ? "llama" : "gpt2",
                              .tied = !sequence,
                              .dropout = 0.1}));
  job.mutable_model()->set_num_hidden_layers(4);
  job.mutable_training()->set_micro_batch_size(1);
  job.mutable_training()->set_gradient_clipping(0);
  JobCut cut = {.schedule = schedule, .pipeline = 2, .data = 2};
  const TrainingRun reference = Train(CutJob(job, cut), {.ranks = cut.ranks()});
  cut.tensor = 2;
  cut.sequence = sequence;
  ExpectSameTraining(Train(CutJob(job, cut), {.ranks = cut.ranks()}), reference,
                     kTolerance);
}

std::vector<std::string> AsynchronousSchedules() {
  std::vector<std::string> names;
  for (const Pipeline& pipeline : Pipelines()) {
    if (pipeline.asynchronous) names.emplace_back(pipeline.name);
  }
  return names;
}

std::string HybridName(const testing::TestParamInfo<Hybrid>& info) {
  const auto& [schedule, sequence] = info.param;
  return absl::StrCat(schedule, sequence ? "_sequence" : "");
}

INSTANTIATE_TEST_SUITE_P(
    InProcess, TensorInAsynchronousPipeline,
    testing::Combine(testing::ValuesIn(AsynchronousSchedules()),
                     testing::Bool()),
    HybridName);

TEST(TensorParallelBf16, TrainsTheSameModelButForItsRounding) {
  for (const std::string architecture : {"gpt2", "llama"}) {
    for (const bool sequence : {false, true}) {
      JobSpec job = WithFewSteps(TensorJob({.architecture = architecture}));
      job.mutable_training()->set_precision("bf16");
      const TrainingRun& reference = OneRank(job);
      job.mutable_parallelism()->set_tensor(4);
      job.mutable_parallelism()->set_sequence_parallel(sequence);
      ExpectSameTraining(Train(job, {.ranks = 4}), reference, 1e-2);
    }
  }
}

TEST(TensorResume, AnyCutContinuesWhatAnotherBegan) {
  constexpr int kSteps = 10;
  for (const std::string architecture : {"gpt2", "llama"}) {
    JobSpec job = TensorJob({.architecture = architecture, .dropout = 0.1});
    job.mutable_training()->set_steps(kSteps);
    job.mutable_training()->set_micro_batch_size(1);
    job.mutable_training()->set_validate_every(0);
    job.mutable_checkpoint()->set_directory(
        NewDirectory(absl::StrCat("tensor_whole_", architecture)));
    const std::string whole_at =
        CheckpointPath(job.checkpoint().directory(), kSteps);
    const TrainingRun whole = Train(job, {});
    ASSERT_TRUE(whole.status().ok()) << whole.status();
    const std::string directory =
        NewDirectory(absl::StrCat("tensor_pieces_", architecture));
    job.mutable_checkpoint()->set_directory(directory);
    const std::vector<JobCut> cuts = {{.tensor = 2},
                                      {.tensor = 4, .sequence = true},
                                      {},
                                      {.tensor = 2, .pipeline = 2, .data = 2},
                                      {.tensor = 8}};
    ASSERT_NO_FATAL_FAILURE(ExpectSameInPieces(job, cuts, whole, kTolerance));
    const StateDifference states =
        CompareStates(CheckpointPath(directory, kSteps), whole_at);
    EXPECT_LT(states.weights, 1e-4);
    EXPECT_LT(states.moments, 1e-4);
  }
}

TEST(TensorResume, TheSameCutContinuesBitForBit) {
  for (const std::string precision : {"f32", "bf16"}) {
    JobSpec job = CutJob(WithFewSteps(TensorJob({.dropout = 0.1})),
                         {.tensor = 2, .sequence = true, .data = 2});
    job.mutable_training()->set_precision(precision);
    job.mutable_training()->set_validate_every(0);
    const std::string whole = NewDirectory("tensor_exact_whole_" + precision);
    job.mutable_checkpoint()->set_directory(whole);
    ASSERT_TRUE(Train(job, {.ranks = 4}).status().ok());
    const std::string halves = NewDirectory("tensor_exact_half_" + precision);
    job.mutable_checkpoint()->set_directory(halves);
    job.mutable_training()->set_stop_after(kFewSteps / 2);
    ASSERT_TRUE(Train(job, {.ranks = 4}).status().ok());
    job.mutable_training()->clear_stop_after();
    const TrainingRun rest = Train(job, {.ranks = 4, .resume = "latest"});
    ASSERT_TRUE(rest.status().ok()) << rest.status();
    const StateDifference states = CompareStates(
        CheckpointPath(halves, kFewSteps), CheckpointPath(whole, kFewSteps));
    EXPECT_EQ(states.weights, 0);
    EXPECT_EQ(states.moments, 0);
  }
}

}  // namespace
}  // namespace troupe
