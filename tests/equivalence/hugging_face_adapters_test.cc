// Adapters that PEFT made are the same adapters here: the same loss on the same
// tokens (tests/oracle/peft/*/expected.json, which PEFT computed in float64).
// What an export writes of them is what came in, and the model into which they
// are merged has that loss, too.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clients/hugging_face/config.h"
#include "clients/hugging_face/expand_adapter.h"
#include "clients/hugging_face/export_model.h"
#include "clients/hugging_face/import_model.h"
#include "gtest/gtest.h"
#include "storage/checkpoint/adapter_files.h"
#include "storage/checkpoint/hugging_face_weights.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/hugging_face_job.h"
#include "tests/storage/checkpoint/planted_value.h"

namespace troupe {
namespace {

using nlohmann::json;

constexpr const char* kModels[] = {
    "gpt2_tiny",      "gpt_neox_tiny", "llama_tiny",      "mistral_tiny",
    "qwen2_tiny",     "qwen3_tiny",    "mixtral_tiny",    "qwen2_moe_tiny",
    "qwen3_moe_tiny", "olmoe_tiny",    "deepseek_v3_tiny"};
constexpr double kLossTolerance = 1e-4;  // f32 here, float64 there

std::string AdapterOf(const std::string& model) {
  return absl::StrCat("tests/oracle/peft/", model);
}

json ReadJson(const std::string& path) {
  return json::parse(std::ifstream(path));
}

double LossOfPeft(const std::string& model) {
  return ReadJson(AdapterOf(model) + "/expected.json").at("loss_float64");
}

// A step that changes nothing of the adapter, and a checkpoint behind it.
struct AdaptedJob {
  explicit AdaptedJob(const std::string& model)
      : expected(model),
        spec(OneStep(expected, *ReadHuggingFaceConfig(expected.directory))) {
    lora().set_adapter(AdapterOf(model));
    const absl::Status expanded = ExpandAdapter(*spec.mutable_training());
    EXPECT_TRUE(expanded.ok()) << expanded;
    if (spec.model().architecture() == "deepseek_v3") {
      // Its biases would be trained, too; PEFT does not have its module.
      spec.mutable_model()->mutable_experts()->set_balance("none");
      spec.mutable_model()->clear_num_nextn_predict_layers();
    }
    spec.mutable_optimizer()->set_lr(1e-30);
    spec.mutable_checkpoint()->set_directory(FreshPath("adapted"));
  }

  LoraSpec& lora() { return *spec.mutable_training()->mutable_lora(); }

  Expected expected;
  JobSpec spec;
};

using Tensors = std::map<std::string, std::vector<float>>;

Tensors ReadAdapter(const std::string& directory) {
  const auto weights =
      HuggingFaceWeights::OpenFile(directory, kAdapterWeightsFile);
  EXPECT_TRUE(weights.ok()) << weights.status();
  Tensors tensors;
  for (const SafetensorsTensor* const tensor : weights->tensors()) {
    std::vector<float>& values =
        tensors[absl::StrCat(tensor->name, " of ", tensor->shape[0], " rows")];
    values.resize(ElementCount(tensor->shape));
    EXPECT_TRUE(weights
                    ->ReadF32(tensor->name,
                              {.begin = 0,
                               .count = static_cast<int64_t>(values.size())},
                              values.data())
                    .ok());
  }
  return tensors;
}

TEST(PeftAdapters, TheLossIsThatOfPeft) {
  for (const char* name : kModels) {
    SCOPED_TRACE(name);
    const TrainingRun run = Train(AdaptedJob(name).spec, {});
    ASSERT_TRUE(run.status().ok()) << run.status();
    EXPECT_NEAR(run.steps[0][0].loss(), LossOfPeft(name), kLossTolerance);
    EXPECT_GT(std::abs(LossOfPeft(name) - Expected(name).loss),
              10 * kLossTolerance)
        << "the adapter changes nothing";
  }
}

// Each reads what it has of A and B.
TEST(PeftAdapters, RanksThatShareLayersReadTheirParts) {
  for (const char* name : {"gpt_neox_tiny", "gpt2_tiny", "llama_tiny"}) {
    SCOPED_TRACE(name);
    AdaptedJob job(name);
    job.spec.mutable_parallelism()->set_tensor(2);
    job.spec.mutable_parallelism()->set_pipeline(2);
    const TrainingRun run = Train(job.spec, {.ranks = 4});
    ASSERT_TRUE(run.status().ok()) << run.status();
    EXPECT_NEAR(run.steps[0][0].loss(), LossOfPeft(name), kLossTolerance);
  }
}

TEST(PeftAdapters, WhatComesInGoesOut) {
  for (const char* name : kModels) {
    SCOPED_TRACE(name);
    const AdaptedJob job(name);
    const TrainingRun run = Train(job.spec, {});
    ASSERT_TRUE(run.status().ok()) << run.status();
    const std::string to = FreshPath("exported");
    const auto exported =
        ExportModel({.checkpoint = run.checkpoints[0].path(), .to = to});
    ASSERT_TRUE(exported.ok()) << exported.status();
    EXPECT_TRUE(exported->adapters);
    EXPECT_FALSE(std::filesystem::exists(to + "/config.json"));
    EXPECT_EQ(ReadAdapter(to), ReadAdapter(AdapterOf(name)));
    const json before = ReadJson(AdapterOf(name) + "/adapter_config.json");
    const json after = ReadJson(to + "/adapter_config.json");
    for (const char* key :
         {"peft_type", "task_type", "r", "lora_alpha", "lora_dropout",
          "use_rslora", "fan_in_fan_out", "bias"}) {
      EXPECT_EQ(after.at(key), before.at(key)) << key;
    }
    EXPECT_EQ(after.at("base_model_name_or_path"), job.expected.directory);
    // It is read again, as the same adapter.
    TrainingSpec again;
    again.mutable_lora()->set_adapter(to);
    EXPECT_TRUE(ExpandAdapter(again).ok());
  }
}

// All modules are adapted, so that their last parts name them.
TEST(PeftAdapters, AnExportNamesLayersByTheirLastParts) {
  const TrainingRun run = Train(AdaptedJob("gpt2_tiny").spec, {});
  ASSERT_TRUE(run.status().ok()) << run.status();
  const std::string to = FreshPath("exported");
  ASSERT_TRUE(
      ExportModel({.checkpoint = run.checkpoints[0].path(), .to = to}).ok());
  EXPECT_EQ(ReadJson(to + "/adapter_config.json").at("target_modules"),
            json::array({"c_attn", "c_fc", "c_proj"}));
}

TEST(PeftAdapters, AnExportOfSomeLayersHasTheirWholeNames) {
  const Expected expected("gpt2_tiny");
  JobSpec job = OneStep(expected, *ReadHuggingFaceConfig(expected.directory));
  LoraSpec& lora = *job.mutable_training()->mutable_lora();
  lora.add_modules("attn.c_proj");
  lora.add_modules("c_attn");
  job.mutable_checkpoint()->set_directory(FreshPath("adapted"));
  const TrainingRun run = Train(job, {});
  ASSERT_TRUE(run.status().ok()) << run.status();
  const std::string to = FreshPath("exported");
  ASSERT_TRUE(
      ExportModel({.checkpoint = run.checkpoints[0].path(), .to = to}).ok());
  EXPECT_EQ(ReadJson(to + "/adapter_config.json").at("target_modules"),
            json::array({"c_attn", "transformer.h.0.attn.c_proj",
                         "transformer.h.1.attn.c_proj"}));
}

TEST(PeftAdapters, MergedIntoTheModelTheLossIsTheSame) {
  for (const char* name : kModels) {
    SCOPED_TRACE(name);
    const TrainingRun run = Train(AdaptedJob(name).spec, {});
    ASSERT_TRUE(run.status().ok()) << run.status();
    const std::string to = FreshPath("merged");
    const auto merged = ExportModel(
        {.checkpoint = run.checkpoints[0].path(), .to = to, .merged = true});
    ASSERT_TRUE(merged.ok()) << merged.status();
    EXPECT_FALSE(merged->adapters);
    EXPECT_FALSE(std::filesystem::exists(to + "/adapter_config.json"));
    const TrainingRun plain =
        Train(OneStep(Expected(name), *ReadHuggingFaceConfig(to)), {});
    ASSERT_TRUE(plain.status().ok()) << plain.status();
    EXPECT_NEAR(plain.steps[0][0].loss(), LossOfPeft(name), kLossTolerance);
  }
}

// A checkpoint with adapters generates what the merged model does.
TEST(PeftAdapters, GenerateAsTheMergedModel) {
  for (const char* name : {"gpt2_tiny", "gpt_neox_tiny", "llama_tiny",
                           "qwen2_moe_tiny", "deepseek_v3_tiny"}) {
    SCOPED_TRACE(name);
    const AdaptedJob job(name);
    const TrainingRun run = Train(job.spec, {});
    ASSERT_TRUE(run.status().ok()) << run.status();
    const std::string checkpoint = run.checkpoints[0].path();
    const std::string to = FreshPath("merged");
    ASSERT_TRUE(
        ExportModel({.checkpoint = checkpoint, .to = to, .merged = true}).ok());
    const auto imported = ImportModel({.from = to, .to = FreshPath("plain")});
    ASSERT_TRUE(imported.ok()) << imported.status();
    const std::vector<int32_t> ids = Continue(checkpoint, job.expected);
    EXPECT_EQ(ids, Continue(imported->checkpoint, job.expected));
    EXPECT_NE(ids, job.expected.greedy) << "the adapter changes nothing";
  }
}

// Adapters of files begin beside a checkpoint that has none.
TEST(PeftAdapters, BeginBesideACheckpointOfTheModel) {
  AdaptedJob job("llama_tiny");
  const auto imported = ImportModel(
      {.from = job.expected.directory, .to = FreshPath("imported")});
  ASSERT_TRUE(imported.ok()) << imported.status();
  const TrainingRun run = Train(job.spec, {.resume = imported->checkpoint});
  ASSERT_TRUE(run.status().ok()) << run.status();
  EXPECT_NEAR(run.steps[0][0].loss(), LossOfPeft("llama_tiny"), kLossTolerance);
}

void ExpectRefused(const JobSpec& job, const std::string& begin,
                   const std::string& part) {
  const TrainingRun run = Train(job, {});
  EXPECT_TRUE(absl::StartsWith(run.status().message(), begin)) << run.status();
  EXPECT_TRUE(absl::StrContains(run.status().message(), part)) << run.status();
  EXPECT_TRUE(run.steps[0].empty());
}

// A client other than the CLI may have filled in something else.
TEST(PeftAdapters, WorkersRefuseAnotherAdapter) {
  AdaptedJob job("llama_tiny");
  job.lora().set_rank(4);
  ExpectRefused(job.spec, "training.lora.rank: is 4, but r of the adapter in ",
                " is 2");
  job.lora().set_rank(2);
  job.lora().set_alpha(5);
  ExpectRefused(job.spec, "training.lora.alpha: is 5, but lora_alpha of ",
                " is 3");
  job.lora().set_alpha(3);
  job.lora().clear_modules();
  job.lora().add_modules("q_proj");
  ExpectRefused(job.spec, "training.lora.adapter: ",
                "belongs to no layer that the job gives an adapter");
  job.lora().add_modules("all-linear");
  job.lora().set_adapter(AdapterOf("gpt2_tiny"));
  ExpectRefused(job.spec, "training.lora.adapter: ",
                "has no tensor base_model.model.model.layers.0.");
  job.lora().set_adapter("nowhere");
  ExpectRefused(job.spec,
                "training.lora.adapter: ", "nowhere/adapter_config.json");
}

TEST(PeftAdapters, AWeightThatIsNoNumberIsNamed) {
  AdaptedJob job("llama_tiny");
  const std::string copy = FreshPath("planted");
  std::filesystem::copy(AdapterOf("llama_tiny"), copy);
  const std::string file = copy + "/" + kAdapterWeightsFile;
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  const std::string tensor =
      "base_model.model.model.layers.1.mlp.up_proj.lora_A.weight";
  PlantValue(file, {.tensor = tensor, .element = 3}, NAN);
  job.lora().set_adapter(copy);
  ExpectRefused(job.spec, "training.lora.adapter: ", tensor + " is nan at ");
}

// transformers and PEFT have another idea of such names.
TEST(PeftAdapters, LayersNamedAsExpertsAreNotExportedAlone) {
  const Expected expected("deepseek_v3_tiny");
  JobSpec job = OneStep(expected, *ReadHuggingFaceConfig(expected.directory));
  job.mutable_model()->clear_num_nextn_predict_layers();
  job.mutable_training()->mutable_lora()->add_modules("mlp.down_proj");
  job.mutable_checkpoint()->set_directory(FreshPath("adapted"));
  const TrainingRun run = Train(job, {});
  ASSERT_TRUE(run.status().ok()) << run.status();
  const std::string checkpoint = run.checkpoints[0].path();
  const absl::Status refused =
      ExportModel({.checkpoint = checkpoint, .to = FreshPath("alone")})
          .status();
  EXPECT_TRUE(absl::StrContains(refused.message(),
                                "PEFT takes each adapter of a layer called "
                                "down_proj for one of experts"))
      << refused;
  const auto merged = ExportModel(
      {.checkpoint = checkpoint, .to = FreshPath("merged"), .merged = true});
  EXPECT_TRUE(merged.ok()) << merged.status();
}

TEST(PeftAdapters, WithoutAdaptersNothingIsMerged) {
  const auto imported = ImportModel(
      {.from = Expected("llama_tiny").directory, .to = FreshPath("plain")});
  ASSERT_TRUE(imported.ok()) << imported.status();
  const absl::Status refused = ExportModel({.checkpoint = imported->checkpoint,
                                            .to = FreshPath("merged"),
                                            .merged = true})
                                   .status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_TRUE(absl::StrContains(refused.message(), "no adapters to merge"))
      << refused;
}

}  // namespace
}  // namespace troupe
