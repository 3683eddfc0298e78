#include "clients/hugging_face/export_model.h"

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>

#include "clients/hugging_face/config.h"
#include "clients/hugging_face/import_model.h"
#include "gmock/gmock.h"
#include "proto/plan/job_json.h"
#include "proto/plan/model.h"
#include "storage/checkpoint/assets.h"
#include "storage/checkpoint/manifest.h"
#include "storage/dataset/sentencepiece/tokenizer.h"
#include "storage/engine/posix_file.h"
#include "tests/clients/hugging_face/round_trip.h"
#include "tests/graphs/skip_graph.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

std::string Imported(const std::string& name) {
  const auto imported =
      ImportModel({.from = HfFixture(name), .to = FreshPath("checkpoint")});
  EXPECT_TRUE(imported.ok()) << imported.status();
  return imported.ok() ? imported->checkpoint : "";
}

// What was imported, exported, is what it was.
TEST(ExportModel, RoundTrip) {
  for (const char* name :
       {"llama_tiny", "llama_tied_bf16_sharded", "mistral_tiny", "qwen2_tiny",
        "gpt_neox_tiny", "qwen3_tiny", "mixtral_tiny", "qwen2_moe_tiny",
        "qwen3_moe_tiny", "olmoe_tiny", "deepseek_v3_tiny", "gpt2_tiny"}) {
    SCOPED_TRACE(name);
    const std::string to = FreshPath(name);
    const auto exported = ExportModel({.checkpoint = Imported(name), .to = to});
    ASSERT_TRUE(exported.ok()) << exported.status();
    EXPECT_EQ(exported->files, 1);
    EXPECT_TRUE(std::filesystem::exists(to + "/generation_config.json"));
    const auto before = HuggingFaceWeights::Open(HfFixture(name));
    const auto after = HuggingFaceWeights::Open(to);
    ASSERT_TRUE(after.ok()) << after.status();
    EXPECT_EQ(after->tensors().size(), before->tensors().size());
    for (const SafetensorsTensor* tensor : after->tensors()) {
      EXPECT_EQ(AllOf(*after, *tensor), AllOf(*before, *tensor))
          << tensor->name;
    }
    ModelSpec model = *ReadHuggingFaceConfig(to);
    ModelSpec was = *ReadHuggingFaceConfig(HfFixture(name));
    // What a file leaves out is written with its default.
    ASSERT_EQ(ResolveModel(model), absl::OkStatus());
    ASSERT_EQ(ResolveModel(was), absl::OkStatus());
    EXPECT_EQ(model.architecture(), was.architecture());
    EXPECT_EQ(model.rope_scaling().SerializeAsString(),
              was.rope_scaling().SerializeAsString());
    EXPECT_EQ(model.tie_word_embeddings(), was.tie_word_embeddings());
    EXPECT_EQ(model.num_nextn_predict_layers(), was.num_nextn_predict_layers());
    EXPECT_EQ(model.sliding_window(), was.sliding_window());
  }
}

// Makes the imported checkpoint one of another model.
void ChangeModel(const std::string& checkpoint,
                 const std::function<void(ModelSpec& model)>& change) {
  Manifest manifest = *ReadManifest(checkpoint);
  JobSpec job = *ParseJobJson(manifest.job);
  change(*job.mutable_model());
  manifest.job = JobJson(job);
  std::ofstream(checkpoint + "/manifest.json") << FormatManifest(manifest);
}

TEST(ExportModel, GPT2WithExpertsIsRefused) {
  const std::string checkpoint = Imported("gpt2_tiny");
  ChangeModel(checkpoint, [](ModelSpec& model) {
    model.set_num_experts(4);
    model.set_num_experts_per_tok(2);
  });
  const std::string to = FreshPath("gpt2_experts");
  const auto exported = ExportModel({.checkpoint = checkpoint, .to = to});
  EXPECT_EQ(exported.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(exported.status().message()),
              HasSubstr("is a gpt2 with experts, and transformers has no "));
  EXPECT_FALSE(std::filesystem::exists(to));
}

TEST(ExportModel, AGraphIsRefused) {
  const std::string checkpoint = Imported("gpt2_tiny");
  ChangeModel(checkpoint, [](ModelSpec& model) { model = SkipModel({}); });
  const std::string to = FreshPath("graph");
  const auto exported = ExportModel({.checkpoint = checkpoint, .to = to});
  EXPECT_EQ(exported.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(exported.status().message()),
              HasSubstr("a model of model.graph is none of Hugging Face's"));
  EXPECT_FALSE(std::filesystem::exists(to));
}

// Of a job that was trained on the tokens of a SentencePiece model.
TEST(ExportModel, TheTokenizerOfItsTokens) {
  const std::string checkpoint = Imported("gpt2_tiny");
  const std::vector<CarriedFile> files = {
      {"config.json", R"({"eos_token_id": 0, "x": Infinity})"},
      {"tokenizer.json", "{}"},
      {"tokenizer.model",
       *ReadWholeFile(HfFixture("llama_tied_bf16_sharded") + "/tokenizer.model",
                      1 << 20)}};
  ASSERT_TRUE(WriteCarriedFiles(checkpoint, files).ok());
  Manifest manifest = *ReadManifest(checkpoint);
  manifest.tokenizer = SentencePieceTokenizerName(files.back().bytes);
  manifest.assets = DescribeCarriedFiles(files);
  std::ofstream(checkpoint + "/manifest.json") << FormatManifest(manifest);
  const std::string to = FreshPath("tokenizer");
  const auto exported = ExportModel({.checkpoint = checkpoint, .to = to});
  ASSERT_TRUE(exported.ok()) << exported.status();
  const auto text = [&](const char* name) {
    return *ReadWholeFile(absl::StrCat(to, "/", name), 1 << 20);
  };
  EXPECT_THAT(text("config.json"), HasSubstr("\"eos_token_id\": 2"));
  EXPECT_THAT(text("config.json"), HasSubstr("\"x\": Infinity"));
  EXPECT_THAT(text("tokenizer.json"), HasSubstr("\"type\": \"BPE\""));
  EXPECT_THAT(text("tokenizer_config.json"), HasSubstr("\"</s>\""));
}

TEST(ExportModel, EndedItLeavesNothing) {
  const std::string folder = FreshPath("ended");
  std::filesystem::create_directories(folder);
  // A shell completes a folder's name with a slash.
  const std::string to = folder + "/model/";
  const std::string checkpoint = Imported("llama_tiny");
  const auto exported = ExportModel(
      {.checkpoint = checkpoint, .to = to, .progress = [&](auto, auto) {
         EXPECT_FALSE(std::filesystem::is_empty(folder));
         return absl::CancelledError("enough");
       }});
  EXPECT_EQ(exported.status(), absl::CancelledError("enough"));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  const auto ends = [](auto, auto) { return absl::CancelledError("enough"); };
  EXPECT_FALSE(ExportModel({.checkpoint = checkpoint,
                            .to = folder + "/not/there/model",
                            .progress = ends})
                   .ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder)) << "the folders that it made";
  const auto whole = ExportModel({.checkpoint = checkpoint, .to = to});
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_TRUE(std::filesystem::exists(folder + "/model/config.json"));
  std::filesystem::create_directory(folder + "/empty");
  const auto into_empty =
      ExportModel({.checkpoint = checkpoint, .to = folder + "/empty/"});
  ASSERT_TRUE(into_empty.ok()) << into_empty.status();
  EXPECT_TRUE(std::filesystem::exists(folder + "/empty/config.json"));
}

// In containers, processes have the same few ids again and again.
TEST(ExportModel, WhatAKilledOneLeftIsNoPartOfIt) {
  const std::string folder = FreshPath("killed");
  std::filesystem::create_directories(folder);
  const std::string to = folder + "/model";
  const std::string checkpoint = Imported("llama_tiny");
  const std::string index = "/model.safetensors.index.json";
  std::string aside;
  ExportOptions ended = {.checkpoint = checkpoint, .to = to};
  ended.progress = [&](auto, auto) {
    aside = std::filesystem::directory_iterator(folder)->path();
    return absl::CancelledError("enough");
  };
  ASSERT_TRUE(absl::IsCancelled(ExportModel(ended).status()));
  for (const std::string& left : {aside, absl::StrCat(to, ".tmp-", getpid())}) {
    std::filesystem::create_directories(left);
    std::ofstream(left + index) << "of another model";
  }
  ASSERT_TRUE(ExportModel({.checkpoint = checkpoint, .to = to}).ok());
  EXPECT_TRUE(std::filesystem::exists(to + "/model.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(to + index));
}

TEST(ExportModel, SeveralFilesWithAnIndex) {
  const std::string to = FreshPath("sharded");
  const auto exported = ExportModel({.checkpoint = Imported("llama_tiny"),
                                     .to = to,
                                     .file_bytes_max = 20000});
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_GT(exported->files, 1);
  const auto before = HuggingFaceWeights::Open(HfFixture("llama_tiny"));
  const auto after = HuggingFaceWeights::Open(to);
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(after->tensors().size(), before->tensors().size());
}

TEST(ExportModel, InBf16EachIsRounded) {
  const std::string to = FreshPath("bf16");
  ASSERT_TRUE(ExportModel({.checkpoint = Imported("llama_tiny"),
                           .to = to,
                           .dtype = StoredDType::kBF16})
                  .ok());
  const auto before = HuggingFaceWeights::Open(HfFixture("llama_tiny"));
  const auto after = HuggingFaceWeights::Open(to);
  for (const SafetensorsTensor* tensor : after->tensors()) {
    EXPECT_EQ(tensor->dtype, StoredDType::kBF16);
    const std::vector<float> want = AllOf(*before, *tensor);
    const std::vector<float> got = AllOf(*after, *tensor);
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(got[i], want[i], std::abs(want[i]) / 256) << tensor->name;
    }
  }
}

TEST(ExportModel, NeverWritesOverWhatIsThere) {
  const std::string to = FreshPath("there");
  std::filesystem::create_directories(to);
  const std::string checkpoint = Imported("gpt2_tiny");
  ASSERT_TRUE(ExportModel({.checkpoint = checkpoint, .to = to}).ok())
      << "an empty folder is free";
  const absl::Status again =
      ExportModel({.checkpoint = checkpoint, .to = to}).status();
  EXPECT_EQ(again.code(), absl::StatusCode::kAlreadyExists);
}

TEST(ExportModel, ADamagedCheckpointIsRefusedAndNothingIsLeft) {
  const std::string checkpoint = Imported("llama_tiny");
  std::fstream shard(checkpoint + "/rank-00000.safetensors",
                     std::ios::in | std::ios::out | std::ios::binary);
  shard.seekp(-5, std::ios::end);
  shard.put('\x55');
  shard.close();
  const std::string to = FreshPath("out");
  const absl::Status status =
      ExportModel({.checkpoint = checkpoint, .to = to}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("rank-00000.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(to));
}

TEST(ExportModel, NoCheckpointNoExport) {
  EXPECT_EQ(ExportModel({.checkpoint = "/nowhere", .to = FreshPath("x")})
                .status()
                .code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace troupe
