// A job with adapters (training.lora): every plan trains the same adapters as
// one rank, and the model beside them never changes.
#include "proto/plan/lora.h"

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/checkpoint/tensor_reader.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/reference_runs.h"
#include "tests/equivalence/small_job.h"
#include "tests/equivalence/tensor_job.h"

namespace troupe {
namespace {

struct AdapterCase {
  const char* architecture = "llama";
  JobCut cut;
  std::vector<const char*> modules = {kAllLinear};
  double dropout = 0;
  const char* precision = "f32";
};

JobSpec WithAdapters(JobSpec job, const AdapterCase& of) {
  LoraSpec& lora = *job.mutable_training()->mutable_lora();
  lora.set_rank(3);
  lora.set_alpha(4);
  lora.set_dropout(of.dropout);
  for (const char* const module : of.modules) lora.add_modules(module);
  job.mutable_training()->set_precision(of.precision);
  return job;
}

void ExpectTrainsTheSame(const AdapterCase& of, ReferenceRuns& references) {
  const JobSpec job = WithAdapters(
      WithFewSteps(TensorJob({.architecture = of.architecture})), of);
  const auto difference =
      references.Compare({{CutJob(job, of.cut), job.training().steps()}}, job);
  ASSERT_TRUE(difference.ok()) << difference.status();
  EXPECT_TRUE(difference->IsRounding(references.FromF32(job)))
      << "losses " << difference->losses << ", norms " << difference->norms
      << ", weights " << difference->weights;
}

// Columns, rows and pieces of sequences; stages and slices of state; adapters
// of some layers, under a mask, of heads that ranks share.
TEST(Lora, EveryPlanTrainsTheSameAdapters) {
  const std::vector<AdapterCase> cases = {
      {"llama", {.tensor = 2}},
      {"llama", {.tensor = 4}},
      {"llama", {.tensor = 2, .sequence = true}},
      {"llama", {.tensor = 2, .sequence = true}, {"q_proj", "v_proj"}},
      {"llama", {.tensor = 2}, {kAllLinear}, 0.2},
      {"llama", {.tensor = 2, .sequence = true}, {kAllLinear}, 0.2},
      {"gpt2", {.tensor = 2, .sequence = true}},
      {"gpt2", {.tensor = 3}, {"c_attn", "*.mlp.c_proj"}, 0.1},
      {"gpt_neox", {.tensor = 2}},
      {"qwen3", {.tensor = 2}, {"o_proj", "up_proj"}},
      {"mixtral", {.tensor = 2, .data = 2, .expert = 2}},
      {"qwen2_moe", {.tensor = 2, .sequence = true}},
      {"deepseek_v3", {.tensor = 2}},
      {"llama", {.data = 2, .zero = 1}},
      {"llama", {.data = 2, .zero = 2}},
      {"gpt2", {.data = 2, .zero = 3}},
      {"llama", {.tensor = 2, .pipeline = 2, .data = 2, .zero = 1}},
      {"llama", {.schedule = "zb_h1", .pipeline = 2}},
      {"gpt2", {.schedule = "interleaved_1f1b", .pipeline = 2}},
      {"llama", {.context = 2, .context_method = "ring"}},
      {"llama", {.context = 2}, {kAllLinear}, 0.2},
      {"llama", {.tensor = 2, .data = 2}, {kAllLinear}, 0, "bf16"},
  };
  ReferenceRuns references;
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(absl::StrCat("case ", i, ", ", cases[i].architecture));
    ExpectTrainsTheSame(cases[i], references);
  }
}

// A and B are cut in one dimension.
TEST(Lora, SquaresAndCubesAreRefused) {
  for (const auto& [method, ranks] :
       {std::pair{"2d", 4}, std::pair{"2.5d", 8}, std::pair{"3d", 8}}) {
    JobSpec job = WithAdapters(WithFewSteps(SmallLlamaJob()), {});
    ParallelismSpec& parallelism = *job.mutable_parallelism();
    parallelism.set_tensor(ranks);
    parallelism.set_tensor_method(method);
    const absl::Status status = CompileForThreads(job, ranks).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << method;
    EXPECT_TRUE(absl::StartsWith(
        status.message(),
        "parallelism.tensor_method: layers with adapters (training.lora) are "
        "cut over ranks in one dimension only"))
        << method << ": " << status;
  }
}

// Experts and routers have none by default; attention and shared experts have.
TEST(Lora, ExpertsAreLeftOut) {
  for (const char* const architecture : {"mixtral", "qwen2_moe"}) {
    const JobSpec job = WithAdapters(
        WithFewSteps(TensorJob({.architecture = architecture})), {});
    const auto plan = CompileForThreads(job, 1);
    ASSERT_TRUE(plan.ok()) << plan.status();
    bool attention = false, shared = false;
    for (const Unit& unit : plan->units()) {
      for (const Parameter& parameter : unit.parameters()) {
        EXPECT_EQ(parameter.frozen(), !parameter.adapter());
        if (!parameter.adapter()) continue;
        const std::string& name = parameter.name();
        EXPECT_FALSE(absl::StrContains(name, "experts.")) << name;
        EXPECT_FALSE(absl::StrContains(name, "gate.lora")) << name;
        EXPECT_FALSE(absl::StrContains(name, "expert_gate")) << name;
        attention |= absl::StrContains(name, "self_attn.");
        shared |= absl::StrContains(name, "shared_expert.");
      }
    }
    EXPECT_TRUE(attention);
    EXPECT_EQ(shared, std::string(architecture) == "qwen2_moe");
  }
}

using State = std::map<std::string, std::vector<float>>;  // by tensor

State ReadState(const std::string& checkpoint) {
  const auto reader = TensorReader::Open(checkpoint);
  EXPECT_TRUE(reader.ok()) << reader.status();
  State state;
  for (const ManifestTensor& tensor : (*reader)->manifest().tensors) {
    std::vector<float>& values = state[tensor.name];
    values.resize(ElementCount(tensor.shape));
    EXPECT_TRUE((*reader)
                    ->Read(tensor.name, StoredDType::kF32,
                           WholeTensor(tensor.shape), values.data())
                    .ok());
  }
  return state;
}

std::string NewDirectory(const std::string& name) {
  std::string directory = absl::StrCat(testing::TempDir(), "/lora_", name);
  std::filesystem::remove_all(directory);
  return directory;
}

struct Run {
  std::string directory;
  int steps = 0;
  std::string resume = "";
};
State TrainTo(JobSpec job, const Run& run) {
  job.mutable_checkpoint()->set_directory(run.directory);
  job.mutable_training()->set_stop_after(run.steps);
  const TrainingRun trained = Train(job, {.ranks = 1, .resume = run.resume});
  EXPECT_TRUE(trained.status().ok()) << trained.status();
  return ReadState(CheckpointPath(run.directory, run.steps));
}

bool IsOfAdapter(const std::string& name) {
  return absl::EndsWith(name, kLoraDown) || absl::EndsWith(name, kLoraUp);
}

// A job that trained the model itself goes on with adapters: they begin then,
// and the model stays as it was.
TEST(Lora, AdaptersBeginBesideACheckpointOfTheModel) {
  const JobSpec plain = WithFewSteps(SmallLlamaJob());
  const JobSpec adapted = WithAdapters(plain, {});
  const std::string first = NewDirectory("first");
  const State before = TrainTo(plain, {.directory = first, .steps = 4});
  const State after = TrainTo(adapted, {.directory = NewDirectory("second"),
                                        .steps = 8,
                                        .resume = CheckpointPath(first, 4)});
  int adapters = 0;
  for (const auto& [name, values] : after) {
    if (IsOfAdapter(name)) {
      ++adapters;
      EXPECT_EQ(before.count(name), 0u) << name;
      continue;
    }
    ASSERT_EQ(before.count(name), 1u) << name;
    EXPECT_EQ(values, before.at(name)) << name;
  }
  // A and B of seven layers in two blocks, with two moments each.
  EXPECT_EQ(adapters, 2 * 7 * 2 * 3);
}

TEST(Lora, AModelIsNotResumedWithoutItsAdapters) {
  const JobSpec plain = WithFewSteps(SmallLlamaJob());
  const std::string first = NewDirectory("adapted");
  TrainTo(WithAdapters(plain, {}), {.directory = first, .steps = 4});
  const TrainingRun refused =
      Train(plain, {.ranks = 1, .resume = CheckpointPath(first, 4)});
  EXPECT_TRUE(absl::StrContains(refused.status().message(), "lora_"))
      << refused.status();
}

}  // namespace
}  // namespace troupe
