// The promise, for what is cut inside units: tensor and sequence parallelism
// train the model that a single rank trains.
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/base/philox.h"
#include "scheduler/pipelines/pipelines.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/checkpoint/tensor_reader.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/pipeline_job.h"
#include "tests/equivalence/same_training.h"
#include "tests/equivalence/small_job.h"

namespace troupe {
namespace {

const Tolerance kTolerance(1e-5, 1e-4);

// Heads, intermediate columns and positions that 2, 3, 4 and 8 divide; a
// vocabulary that none of them does; key-value heads that are shared by
// neighbours where there are fewer than ranks.
struct TensorModel {
  std::string architecture = "gpt2";
  bool tied = true;
  double dropout = 0;
  int key_value_heads = 2;
};
JobSpec TensorJob(const TensorModel& options) {
  JobSpec job = SmallJobOf(options.architecture);
  ModelSpec& model = *job.mutable_model();
  model.set_hidden_size(48);
  model.set_num_attention_heads(24);
  model.set_intermediate_size(72);
  model.set_tie_word_embeddings(options.tied);
  if (model.has_num_key_value_heads()) {
    model.set_num_key_value_heads(options.key_value_heads);
    model.set_head_dim(4);
  }
  if (options.architecture == "gpt_neox") {
    model.set_hidden_size(96);
    model.set_partial_rotary_factor(0.5);
  }
  if (model.has_sliding_window()) model.set_sliding_window(24);
  model.set_max_position_embeddings(24);
  TrainingSpec& training = *job.mutable_training();
  training.set_sequence_length(24);
  training.set_micro_batch_size(2);
  training.set_dropout(options.dropout);
  // Sums within units are taken in another order, so that every value differs
  // by a rounding. AdamW would make steps of gradients that are nothing but
  // that.
  job.mutable_optimizer()->set_name("adamw");
  job.mutable_optimizer()->set_lr(4e-3);
  job.mutable_optimizer()->set_eps(1e-3);
  return job;
}

// The run of a job that is cut nowhere; the same for all cuts of one model.
const TrainingRun& OneRank(const JobSpec& job) {
  static auto* const runs = new std::map<std::string, TrainingRun>;
  const auto [found, is_new] = runs->try_emplace(job.SerializeAsString());
  if (is_new) found->second = Train(job, {});
  return found->second;
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
  JobSpec job = TensorJob({.architecture = architecture,
                           .tied = IsTied(GetParam()),
                           .dropout = Dropout(GetParam()),
                           .key_value_heads = tensor == 3 ? 3 : 2});
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

INSTANTIATE_TEST_SUITE_P(InProcess, TensorParallel,
                         testing::Combine(testing::Values("gpt2", "gpt_neox",
                                                          "llama", "mistral",
                                                          "qwen2", "qwen3"),
                                          testing::Values(2, 3, 4, 8),
                                          testing::Bool()),
                         CaseName);

// With everything else: schedule, sequence parallel. What the rest of a job is,
// is drawn.
using Hybrid = std::tuple<std::string, bool>;

class TensorInAnyPlan : public testing::TestWithParam<Hybrid> {};

struct HybridJob {
  JobSpec job;
  int data = 1;
};
HybridJob Draw(const Hybrid& hybrid) {
  const auto& [schedule, sequence] = hybrid;
  uint64_t number = sequence ? 1 : 0;
  for (const char c : schedule) number = number * 31 + static_cast<uint8_t>(c);
  const uint32_t draw =
      PhiloxUint32({.seed = 13, .purpose = RandomPurpose::kSampling}, number);
  HybridJob drawn = {
      .job = TensorJob({.architecture = draw % 2 == 0 ? "gpt2" : "llama",
                        .tied = draw / 2 % 2 == 0,
                        .dropout = draw / 4 % 2 == 0 ? 0.1 : 0.0}),
      .data = draw / 8 % 2 == 0 ? 1 : 2};
  drawn.job.mutable_model()->set_num_hidden_layers(4);
  drawn.job.mutable_training()->set_micro_batch_size(1);
  return drawn;
}

TEST_P(TensorInAnyPlan, TrainsTheSameModel) {
  const auto& [schedule, sequence] = GetParam();
  const auto [job, data] = Draw(GetParam());
  SCOPED_TRACE(testing::Message()
               << "data " << data << ", a " << job.model().architecture());
  const PipelineCut cut = {.schedule = schedule, .data = data};
  JobSpec hybrid = CutJob(job, cut);
  hybrid.mutable_parallelism()->set_tensor(2);
  hybrid.mutable_parallelism()->set_sequence_parallel(sequence);
  const auto pipeline = FindPipeline(schedule);
  ASSERT_TRUE(pipeline.ok());
  // Those that use older weights are compared with themselves.
  JobSpec reference = job;
  int ranks = 1;
  if (pipeline->asynchronous) {
    hybrid.mutable_training()->set_gradient_clipping(0);
    reference = CutJob(job, cut);
    reference.mutable_training()->set_gradient_clipping(0);
    ranks = cut.ranks();
  }
  ExpectSameTraining(
      Train(hybrid, {.ranks = 2 * cut.ranks()}),
      ranks == 1 ? OneRank(reference) : Train(reference, {.ranks = ranks}),
      kTolerance);
}

std::vector<std::string> AllSchedules() {
  std::vector<std::string> names;
  for (const Pipeline& pipeline : Pipelines()) {
    names.emplace_back(pipeline.name);
  }
  return names;
}

std::string HybridName(const testing::TestParamInfo<Hybrid>& info) {
  const auto& [schedule, sequence] = info.param;
  return absl::StrCat(schedule, sequence ? "_sequence" : "");
}

INSTANTIATE_TEST_SUITE_P(InProcess, TensorInAnyPlan,
                         testing::Combine(testing::ValuesIn(AllSchedules()),
                                          testing::Bool()),
                         HybridName);

TEST(TensorParallelBf16, TrainsTheSameModelButForItsRounding) {
  for (const std::string& architecture : {"gpt2", "llama"}) {
    for (const bool sequence : {false, true}) {
      JobSpec job = TensorJob({.architecture = architecture});
      job.mutable_training()->set_precision("bf16");
      const TrainingRun reference = Train(job, {});
      job.mutable_parallelism()->set_tensor(4);
      job.mutable_parallelism()->set_sequence_parallel(sequence);
      ExpectSameTraining(Train(job, {.ranks = 4}), reference, 1e-2);
    }
  }
}

// How a job's units are cut, and the rest of it.
struct TensorCut {
  int tensor = 1;
  bool sequence = false;
  int pipeline = 1;
  int data = 1;
  int ranks() const { return tensor * pipeline * data; }
};

JobSpec CutJob(JobSpec job, const TensorCut& cut) {
  ParallelismSpec& parallelism = *job.mutable_parallelism();
  parallelism.set_tensor(cut.tensor);
  parallelism.set_sequence_parallel(cut.sequence);
  parallelism.set_pipeline(cut.pipeline);
  parallelism.set_data(cut.data);
  return job;
}

// The root of the squared differences of all weights and moments, over that of
// their squares.
double StateDifference(const std::string& a, const std::string& b) {
  const auto first = TensorReader::Open(a);
  const auto second = TensorReader::Open(b);
  EXPECT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(second.ok()) << second.status();
  double differences = 0;
  double squares = 0;
  for (const ManifestTensor& tensor : (*first)->manifest().tensors) {
    std::vector<float> want(ElementCount(tensor.shape));
    std::vector<float> got(want.size());
    const TensorBox all = WholeTensor(tensor.shape);
    for (auto& [reader, to] : {std::make_pair(&**first, want.data()),
                               std::make_pair(&**second, got.data())}) {
      const absl::Status read =
          reader->Read(tensor.name, StoredDType::kF32, all, to);
      EXPECT_TRUE(read.ok()) << read;
    }
    for (size_t i = 0; i < want.size(); ++i) {
      const double difference = double{got[i]} - double{want[i]};
      differences += difference * difference;
      squares += double{want[i]} * double{want[i]};
    }
  }
  return std::sqrt(differences / squares);
}

std::string NewDirectory(const std::string& name) {
  const std::string directory = absl::StrCat(testing::TempDir(), "/", name);
  std::filesystem::remove_all(directory);
  return directory;
}

TEST(TensorResume, AnyCutContinuesWhatAnotherBegan) {
  for (const std::string& architecture : {"gpt2", "llama"}) {
    JobSpec job = TensorJob({.architecture = architecture, .dropout = 0.1});
    job.mutable_training()->set_micro_batch_size(1);
    job.mutable_training()->set_validate_every(0);
    job.mutable_checkpoint()->set_directory(
        NewDirectory(absl::StrCat("tensor_whole_", architecture)));
    const std::string whole_at =
        CheckpointPath(job.checkpoint().directory(), 20);
    const TrainingRun whole = Train(job, {});
    ASSERT_TRUE(whole.status().ok()) << whole.status();
    const std::string directory =
        NewDirectory(absl::StrCat("tensor_pieces_", architecture));
    job.mutable_checkpoint()->set_directory(directory);
    const TensorCut cuts[] = {{.tensor = 2},
                              {.tensor = 4, .sequence = true},
                              {},
                              {.tensor = 2, .pipeline = 2, .data = 2},
                              {.tensor = 8}};
    int64_t done = 0;
    for (const TensorCut& cut : cuts) {
      SCOPED_TRACE(testing::Message() << architecture << " from step " << done
                                      << ", tensor " << cut.tensor);
      JobSpec part = CutJob(job, cut);
      part.mutable_training()->set_stop_after(done + 4);
      const TrainingRun run = Train(
          part, {.ranks = cut.ranks(), .resume = done > 0 ? "latest" : ""});
      ASSERT_TRUE(run.status().ok()) << run.status();
      for (const std::vector<StepRecord>& records : run.steps) {
        ExpectSameSteps(records, whole.steps[0], kTolerance);
      }
      done += 4;
    }
    EXPECT_LT(StateDifference(whole_at, CheckpointPath(directory, 20)), 1e-4);
  }
}

TEST(TensorResume, TheSameCutContinuesBitForBit) {
  for (const std::string precision : {"f32", "bf16"}) {
    JobSpec job = CutJob(TensorJob({.dropout = 0.1}),
                         {.tensor = 2, .sequence = true, .data = 2});
    job.mutable_training()->set_precision(precision);
    job.mutable_training()->set_validate_every(0);
    const std::string whole = NewDirectory("tensor_exact_whole_" + precision);
    job.mutable_checkpoint()->set_directory(whole);
    ASSERT_TRUE(Train(job, {.ranks = 4}).status().ok());
    const std::string halves = NewDirectory("tensor_exact_half_" + precision);
    job.mutable_checkpoint()->set_directory(halves);
    job.mutable_training()->set_stop_after(10);
    ASSERT_TRUE(Train(job, {.ranks = 4}).status().ok());
    job.mutable_training()->clear_stop_after();
    const TrainingRun rest = Train(job, {.ranks = 4, .resume = "latest"});
    ASSERT_TRUE(rest.status().ok()) << rest.status();
    EXPECT_EQ(
        StateDifference(CheckpointPath(whole, 20), CheckpointPath(halves, 20)),
        0);
  }
}

}  // namespace
}  // namespace troupe
