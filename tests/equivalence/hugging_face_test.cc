// A model made in transformers and brought here by `model: {hf: DIR}` or an
// import is the same model: the same loss on the same tokens, the same greedy
// continuation (tests/oracle/hf/*/expected.json, which transformers computed).
#include <cmath>
#include <filesystem>
#include <utility>

#include "clients/hugging_face/config.h"
#include "clients/hugging_face/export_model.h"
#include "clients/hugging_face/import_model.h"
#include "gtest/gtest.h"
#include "tests/clients/hugging_face/edit_weights.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/hugging_face_job.h"
#include "tests/storage/checkpoint/planted_value.h"

namespace troupe {
namespace {

constexpr const char* kModels[] = {"gpt2_tiny",       "gpt2_bare",
                                   "llama_tiny",      "llama_tied_bf16_sharded",
                                   "mistral_tiny",    "qwen2_tiny",
                                   "gpt_neox_tiny",   "qwen3_tiny",
                                   "mixtral_tiny",    "qwen2_moe_tiny",
                                   "qwen3_moe_tiny",  "olmoe_tiny",
                                   "deepseek_v3_tiny"};

TEST(HuggingFace, TheLossIsThatOfTransformers) {
  for (const char* name : kModels) {
    SCOPED_TRACE(name);
    const Expected expected(name);
    const auto model = ReadHuggingFaceConfig(expected.directory);
    ASSERT_TRUE(model.ok()) << model.status();
    const TrainingRun run = Train(OneStep(expected, *model), {});
    ASSERT_TRUE(run.status().ok()) << run.status();
    EXPECT_NEAR(run.steps[0][0].loss(), expected.loss, 1e-4);
  }
}

// Not in step 1, with advice on the learning rate.
TEST(HuggingFace, AWeightThatIsNoNumberIsNamedBeforeAnyStep) {
  const Expected original("llama_tiny");
  const std::string copy = FreshPath("planted");
  std::filesystem::copy(original.directory, copy);
  const std::string file = copy + "/model.safetensors";
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  PlantValue(file, {.tensor = "model.norm.weight", .element = 3}, NAN);
  const TrainingRun run =
      Train(OneStep(original, *ReadHuggingFaceConfig(copy)), {});
  EXPECT_EQ(run.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(run.status().message(),
            "model.hf: " + file +
                ": tensor model.norm.weight is nan at [3]; the file "
                "holds this, and this run has changed nothing yet: start from "
                "other weights or an earlier checkpoint");
  EXPECT_TRUE(run.steps[0].empty());
  EXPECT_EQ(ImportModel({.from = copy, .to = FreshPath("planted_import")})
                .status()
                .code(),
            absl::StatusCode::kDataLoss);
}

// A client other than the CLI may have checked nothing, and the directory at a
// worker's root may differ from the client's.
TEST(HuggingFace, WeightsOfAnotherModelAreRefusedByWorkers) {
  const Expected original("llama_tiny");
  const std::string copy = FreshPath("left_over");
  std::filesystem::copy(original.directory, copy);
  const std::string file = copy + "/model.safetensors";
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  RawTensors tensors = ReadRawTensors(file);
  const std::string bias = "model.layers.0.self_attn.q_proj.bias";
  tensors[bias] = tensors.at("model.norm.weight");
  WriteRawTensors(file, tensors);
  JobSpec job = OneStep(original, *ReadHuggingFaceConfig(copy));
  job.mutable_parallelism()->set_pipeline(2);
  const TrainingRun run = Train(job, {.ranks = 2});
  EXPECT_EQ(run.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run.status().message(),
            "model.hf: " + copy + ": tensor " + bias +
                " belongs to no model that its config.json describes; is it "
                "of another architecture?");
  EXPECT_TRUE(run.steps[0].empty());
}

TEST(HuggingFace, ATiedTableThatDiffersIsRefusedByWorkers) {
  const Expected original("qwen2_tiny");
  const std::string copy = FreshPath("differing");
  std::filesystem::copy(original.directory, copy);
  const std::string file = copy + "/model.safetensors";
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  RawTensors tensors = ReadRawTensors(file);
  RawTensor projection = tensors.at("model.embed_tokens.weight");
  projection.bytes[0] ^= 1;
  tensors["lm_head.weight"] = projection;
  WriteRawTensors(file, tensors);
  const TrainingRun run =
      Train(OneStep(original, *ReadHuggingFaceConfig(copy)), {});
  EXPECT_EQ(run.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(run.status().message().find(
                "tensor lm_head.weight differs from model.embed_tokens.weight"),
            std::string::npos)
      << run.status();
}

// Every worker that has the table finds it.
TEST(HuggingFace, ATiedTableMayHaveTheProjectionsName) {
  const Expected expected("qwen2_tiny");
  const std::string copy = FreshPath("tied");
  std::filesystem::copy(expected.directory, copy);
  const std::string file = copy + "/model.safetensors";
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  RawTensors tensors = ReadRawTensors(file);
  auto table = tensors.extract("model.embed_tokens.weight");
  ASSERT_FALSE(table.empty());
  table.key() = "lm_head.weight";
  tensors.insert(std::move(table));
  WriteRawTensors(file, tensors);
  JobSpec job = OneStep(expected, *ReadHuggingFaceConfig(copy));
  job.mutable_parallelism()->set_pipeline(2);
  const TrainingRun run = Train(job, {.ranks = 2});
  ASSERT_TRUE(run.status().ok()) << run.status();
  EXPECT_NEAR(run.steps[0][0].loss(), expected.loss, 1e-4);
}

TEST(HuggingFace, ImportedItContinuesAsInTransformers) {
  for (const char* name : kModels) {
    SCOPED_TRACE(name);
    const Expected expected(name);
    const auto imported =
        ImportModel({.from = expected.directory, .to = FreshPath(name)});
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_EQ(Continue(imported->checkpoint, expected), expected.greedy);
  }
}

// From a directory, a step of training, out to a directory, and in again: what
// the second job begins with is what the first ended with.
TEST(HuggingFace, TrainedAndExportedItIsTheSameModel) {
  for (const char* name :
       {"gpt2_tiny", "llama_tiny", "mistral_tiny", "qwen2_tiny",
        "gpt_neox_tiny", "qwen3_tiny", "mixtral_tiny"}) {
    SCOPED_TRACE(name);
    const Expected expected(name);
    JobSpec job = OneStep(expected, *ReadHuggingFaceConfig(expected.directory));
    job.mutable_training()->set_steps(2);
    job.mutable_checkpoint()->set_directory(FreshPath("checkpoints"));
    job.mutable_checkpoint()->set_every(1);
    job.mutable_checkpoint()->set_keep(0);
    const TrainingRun run = Train(job, {});
    ASSERT_TRUE(run.status().ok()) << run.status();
    const std::string to = FreshPath("exported");
    const auto exported =
        ExportModel({.checkpoint = run.checkpoints[0].path(), .to = to});
    ASSERT_TRUE(exported.ok()) << exported.status();
    const TrainingRun second =
        Train(OneStep(expected, *ReadHuggingFaceConfig(to)), {});
    ASSERT_TRUE(second.status().ok()) << second.status();
    EXPECT_NEAR(second.steps[0][0].loss(), run.steps[0][1].loss(), 1e-6);
    EXPECT_LT(second.steps[0][0].loss(), run.steps[0][0].loss());
  }
}

TEST(HuggingFace, AnImportedCheckpointIsTrainedOn) {
  const Expected expected("llama_tiny");
  const auto imported =
      ImportModel({.from = expected.directory, .to = FreshPath("resume")});
  ASSERT_TRUE(imported.ok()) << imported.status();
  const TrainingRun run = Train(OneStep(expected, imported->model),
                                {.resume = imported->checkpoint});
  ASSERT_TRUE(run.status().ok()) << run.status();
  EXPECT_NEAR(run.steps[0][0].loss(), expected.loss, 1e-4);
}

}  // namespace
}  // namespace troupe
