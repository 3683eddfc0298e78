// Jobs that keep a moving average of their weights (optimizer.ema): whatever
// the plan, it is what a plain loop makes of the weights of each step, bit for
// bit; it goes from one plan to another with the checkpoint, begins where there
// was none, and training is what it is without.
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/hugging_face/export_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "proto/plan/optimizer_states.h"
#include "proto/plan/ranks_needed.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/checkpoint/hugging_face_weights.h"
#include "storage/checkpoint/tensor_reader.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/same_training.h"
#include "tests/equivalence/small_job.h"
#include "tests/equivalence/tensor_job.h"

namespace troupe {
namespace {

constexpr int kSteps = 4;
constexpr double kDecay = 0.8;

JobSpec Averaging(JobSpec job, bool warmup = false) {
  EmaSpec& ema = *job.mutable_optimizer()->mutable_ema();
  ema.set_decay(kDecay);
  ema.set_warmup(warmup);
  return job;
}

JobSpec SavingEachStep(JobSpec job, const std::string& directory) {
  job.mutable_training()->set_steps(kSteps);
  job.mutable_checkpoint()->set_directory(directory);
  job.mutable_checkpoint()->set_every(1);
  job.mutable_checkpoint()->set_keep(0);
  return job;
}

std::string NewDirectory() {
  const testing::TestInfo& test =
      *testing::UnitTest::GetInstance()->current_test_info();
  static int count = 0;
  const std::string directory =
      absl::StrCat(testing::TempDir(), "/", test.name(), ++count);
  std::filesystem::remove_all(directory);
  return directory;
}

using Tensors = std::map<std::string, std::vector<float>>;

// All tensors of the checkpoint of a step.
Tensors Saved(const std::string& directory, int64_t step) {
  auto reader = TensorReader::Open(CheckpointPath(directory, step));
  CHECK_OK(reader.status());
  Tensors tensors;
  for (const ManifestTensor& tensor : (*reader)->manifest().tensors) {
    std::vector<float>& values = tensors[tensor.name];
    values.resize(ElementCount(tensor.shape));
    CHECK_OK((*reader)->ReadRange(
        tensor.name, StoredDType::kF32,
        {.begin = 0, .count = static_cast<int64_t>(values.size())},
        values.data()));
  }
  return tensors;
}

std::string AverageOf(const std::string& weight) {
  return StateTensorName(kAverageState, weight);
}

void Average(const Tensors& weights, double decay, Tensors& averages) {
  const double kept = std::ldexp(std::round(std::ldexp(decay, 24)), -24);
  const double taken = 1 - kept;
  for (auto& [name, average] : averages) {
    const std::vector<float>& of = weights.at(name);
    for (size_t i = 0; i < of.size(); ++i) {
      average[i] = static_cast<float>(kept * average[i] + taken * of[i]);
    }
  }
}

// The weights among them.
Tensors WeightsOf(const Tensors& saved) {
  Tensors weights;
  for (const auto& [name, values] : saved) {
    if (!IsStateTensor(name)) weights[name] = values;
  }
  return weights;
}

void ExpectAverages(const Tensors& saved, const Tensors& averages) {
  for (const auto& [name, average] : averages) {
    const auto found = saved.find(AverageOf(name));
    ASSERT_NE(found, saved.end()) << name;
    EXPECT_EQ(found->second, average) << name;
  }
}

// From the first step that is saved on: what it began with is in no checkpoint.
void ExpectFollows(const std::string& directory, bool warmup) {
  Tensors before = Saved(directory, 1);
  Tensors averages = WeightsOf(before);
  for (auto& [name, average] : averages) average = before.at(AverageOf(name));
  for (int step = 2; step <= kSteps; ++step) {
    const Tensors saved = Saved(directory, step);
    const double decay =
        warmup ? std::min(kDecay, (1.0 + step) / (10.0 + step)) : kDecay;
    Average(WeightsOf(saved), decay, averages);
    ExpectAverages(saved, averages);
  }
}

struct Case {
  const char* name;
  const char* architecture = "llama";
  JobCut cut;
  const char* tier = "device";
  const char* precision = "f32";
};

JobSpec CutAs(const Case& of) {
  JobSpec job = TensorJob({.architecture = of.architecture});
  job.mutable_training()->set_precision(of.precision);
  job = CutJob(job, of.cut);
  const std::string tier = of.tier;
  job.mutable_memory()->set_optimizer(tier);
  job.mutable_memory()->set_parameters(tier);
  job.mutable_memory()->set_gradients(tier == "nvme" ? "host" : tier);
  return job;
}

const Case kCases[] = {
    {"one rank", "gpt2"},
    {"replicas", "llama", {.data = 2}},
    {"states in slices", "gpt2", {.data = 2, .zero = 1}},
    {"gradients in slices", "llama", {.data = 4, .zero = 2}},
    {"parameters in slices", "llama", {.data = 4, .zero = 3}},
    {"tensor", "gpt2", {.tensor = 2}},
    {"blocks", "llama", {.tensor = 4, .tensor_method = "2d"}},
    {"pipeline", "llama", {.schedule = "1f1b", .pipeline = 2, .data = 2}},
    {"older weights", "gpt2", {.schedule = "pipedream", .pipeline = 2}},
    {"experts", "mixtral", {.data = 2, .expert = 2}},
    {"bf16", "llama", {.tensor = 2}, "device", "bf16"},
    {"fp16", "gpt2", {.data = 2, .zero = 1}, "device", "fp16"},
    {"in the host's memory", "llama", {.data = 2, .zero = 1}, "host"},
    {"bf16 on a disk", "llama", {.data = 2, .zero = 3}, "nvme", "bf16"},
};

TEST(Ema, IsThatOfAPlainLoopOfEveryPlan) {
  for (const Case& of : kCases) {
    SCOPED_TRACE(of.name);
    for (const bool warmup : {false, true}) {
      const std::string directory = NewDirectory();
      const JobSpec job =
          SavingEachStep(Averaging(CutAs(of), warmup), directory);
      const TrainingRun run = Train(job, {.ranks = RanksNeeded(job)});
      ASSERT_TRUE(run.status().ok()) << run.status();
      ExpectFollows(directory, warmup);
      std::filesystem::remove_all(directory);
    }
  }
}

// Training does what it does without, bit for bit.
TEST(Ema, ChangesNothingOfTraining) {
  for (const Case& of : kCases) {
    SCOPED_TRACE(of.name);
    JobSpec job = CutAs(of);
    job.mutable_training()->set_steps(kSteps);
    const TrainOptions options = {.ranks = RanksNeeded(job)};
    ExpectSameTraining(Train(Averaging(job), options), Train(job, options), 0);
  }
}

// It begins as the first weights: those of the seed, and, where a checkpoint
// has none, those of the checkpoint.
TEST(Ema, BeginsAsTheWeights) {
  const std::string directory = NewDirectory();
  JobSpec job = SavingEachStep(TensorJob({}), directory);
  // So that the weights stay what they were.
  JobSpec still = job;
  still.mutable_optimizer()->set_lr(1e-30);
  still.mutable_optimizer()->set_weight_decay(0);
  still.mutable_training()->set_stop_after(1);
  const TrainingRun first = Train(Averaging(still), {});
  ASSERT_TRUE(first.status().ok()) << first.status();
  Tensors saved = Saved(directory, 1);
  Tensors averages = WeightsOf(saved);
  for (auto& [name, average] : averages) {
    for (float& value : average) {
      if (std::abs(value) < 1e-20) value = 0;  // a bias, which began as zero
    }
  }
  Average(WeightsOf(saved), kDecay, averages);
  ExpectAverages(saved, averages);

  std::filesystem::remove_all(directory);
  JobSpec without = job;
  without.mutable_training()->set_stop_after(2);
  ASSERT_TRUE(Train(without, {}).status().ok());
  averages = WeightsOf(Saved(directory, 2));
  EXPECT_EQ(Saved(directory, 2).count(AverageOf("transformer.wte.weight")), 0u);
  const TrainingRun run = Train(Averaging(job), {.resume = "latest"});
  ASSERT_TRUE(run.status().ok()) << run.status();
  for (int step = 3; step <= kSteps; ++step) {
    saved = Saved(directory, step);
    Average(WeightsOf(saved), kDecay, averages);
    ExpectAverages(saved, averages);
  }
  std::filesystem::remove_all(directory);
}

// One plan goes on from another's average, to the last bit where their weights
// agree to the last bit: each is held to the weights that it saved.
TEST(Ema, GoesFromPlanToPlan) {
  const std::string directory = NewDirectory();
  const std::vector<JobCut> cuts = {{},
                                    {.data = 2, .zero = 3},
                                    {.tensor = 2, .sequence = true},
                                    {.schedule = "1f1b", .pipeline = 2}};
  for (size_t i = 0; i < cuts.size(); ++i) {
    JobSpec job = SavingEachStep(
        Averaging(CutJob(TensorJob({.architecture = "llama"}), cuts[i])),
        directory);
    job.mutable_training()->set_stop_after(static_cast<int64_t>(i) + 1);
    const TrainingRun run = Train(
        job, {.ranks = RanksNeeded(job), .resume = i > 0 ? "latest" : ""});
    ASSERT_TRUE(run.status().ok()) << run.status();
  }
  ExpectFollows(directory, /*warmup=*/false);
  std::filesystem::remove_all(directory);
}

TEST(Ema, OfRulesWithAndWithoutStatesAndOfWhatIsTrained) {
  const std::string directory = NewDirectory();
  JobSpec job = TensorJob({.architecture = "llama", .tied = false});
  for (const auto& [match, name] : {std::pair("*.mlp.up_proj.weight", "lion"),
                                    {"*norm*", "sgd"},
                                    {"*.mlp.gate_proj.weight", "adafactor"},
                                    {"*.mlp.down_proj.weight", "muon"}}) {
    OptimizerGroup& group = *job.mutable_optimizer()->add_groups();
    group.add_match(match);
    group.set_name(name);
  }
  job.mutable_training()->add_freeze("*.embed_tokens.*");
  job = SavingEachStep(Averaging(CutJob(job, JobCut{.data = 2, .zero = 1})),
                       directory);
  const TrainingRun run = Train(job, {.ranks = 2});
  ASSERT_TRUE(run.status().ok()) << run.status();
  const std::string frozen = "model.embed_tokens.weight";
  Tensors first = Saved(directory, 1);
  EXPECT_EQ(first.count(AverageOf(frozen)), 0u);
  Tensors averages = WeightsOf(first);
  averages.erase(frozen);
  for (auto& [name, average] : averages) average = first.at(AverageOf(name));
  for (int step = 2; step <= kSteps; ++step) {
    const Tensors saved = Saved(directory, step);
    Average(WeightsOf(saved), kDecay, averages);
    ExpectAverages(saved, averages);
  }
  std::filesystem::remove_all(directory);
}

// An export has the average in place of each trained weight, and frozen weights
// as they are.
TEST(Ema, IsExported) {
  const std::string directory = NewDirectory();
  JobSpec job = TensorJob({});
  job.mutable_training()->add_freeze("*.wpe.*");
  job = SavingEachStep(Averaging(job), directory);
  ASSERT_TRUE(Train(job, {}).status().ok());
  const Tensors saved = Saved(directory, kSteps);
  for (const bool averages : {true, false}) {
    const std::string to = NewDirectory();
    const auto exported =
        ExportModel({.checkpoint = CheckpointPath(directory, kSteps),
                     .to = to,
                     .averages = averages});
    ASSERT_TRUE(exported.ok()) << exported.status();
    const auto weights = HuggingFaceWeights::Open(to);
    ASSERT_TRUE(weights.ok()) << weights.status();
    for (const auto& [name, weight] : WeightsOf(saved)) {
      const bool averaged = averages && name.find(".wpe.") == std::string::npos;
      std::vector<float> values(weight.size());
      ASSERT_TRUE(weights
                      ->ReadF32(name,
                                {.begin = 0,
                                 .count = static_cast<int64_t>(values.size())},
                                values.data())
                      .ok())
          << name;
      EXPECT_EQ(values, averaged ? saved.at(AverageOf(name)) : weight) << name;
    }
    std::filesystem::remove_all(to);
  }
  std::filesystem::remove_all(directory);
  const std::string without = NewDirectory();
  ASSERT_TRUE(Train(SavingEachStep(TensorJob({}), without), {}).status().ok());
  const auto refused =
      ExportModel({.checkpoint = CheckpointPath(without, kSteps),
                   .to = NewDirectory(),
                   .averages = true});
  EXPECT_THAT(refused.status().message(),
              testing::HasSubstr("is of a job without optimizer.ema"));
  std::filesystem::remove_all(without);
}

}  // namespace
}  // namespace troupe
