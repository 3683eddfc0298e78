#include "tests/equivalence/small_job.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "proto/base/philox.h"
#include "storage/dataset/token_file_writer.h"

namespace troupe {
namespace {

constexpr int kVocab = 61;

uint32_t Random(uint64_t i) {
  return PhiloxUint32({.seed = 9, .purpose = RandomPurpose::kSampling}, i);
}

// Of documents that have `tokens` tokens in all, or some more.
std::vector<int> LengthsOfDocuments(int tokens) {
  std::vector<int> lengths;
  for (int i = 0; tokens > 0; ++i) {
    const int most = i % 5 == 0 ? 60 : 9;
    lengths.push_back(1 + static_cast<int>(Random(1000 + i) % most));
    tokens -= lengths.back();
  }
  return lengths;
}

}  // namespace

std::string WriteDocuments(const std::string& name,
                           const std::vector<int>& lengths) {
  const std::string path = absl::StrCat(testing::TempDir(), "/", name);
  auto writer = TokenFileWriter::Create(
      {.path = path, .vocab_size = kVocab, .tokenizer = "bytes"});
  CHECK(writer.ok()) << writer.status().ToString();
  uint64_t drawn = 0;
  for (const int length : lengths) {
    std::vector<int32_t> tokens(length);
    tokens[0] = static_cast<int32_t>(Random(drawn++) % kVocab);
    for (int i = 1; i < length; ++i) {
      tokens[i] = static_cast<int32_t>(
          (tokens[i - 1] * 3 + i + Random(drawn++) % 2) % kVocab);
    }
    CHECK_OK((*writer)->Append(tokens));
    CHECK_OK((*writer)->EndDocument());
  }
  CHECK((*writer)->Finish().ok());
  return path;
}

JobSpec IsolatingDocuments(JobSpec job) {
  job.mutable_data()->set_tokens(
      WriteDocuments("documents.tokens", LengthsOfDocuments(6000)));
  job.mutable_data()->set_isolate_documents(true);
  return job;
}

JobSpec SmallJob() {
  const std::string path =
      absl::StrCat(testing::TempDir(), "/equivalence.tokens");
  auto writer = TokenFileWriter::Create(
      {.path = path, .vocab_size = kVocab, .tokenizer = "bytes"});
  CHECK(writer.ok()) << writer.status().ToString();
  // Each token all but follows from the one before, so there is something to
  // learn.
  std::vector<int32_t> tokens(4000);
  for (size_t i = 1; i < tokens.size(); ++i) {
    const uint32_t random =
        PhiloxUint32({.seed = 5, .purpose = RandomPurpose::kSampling}, i);
    tokens[i] = (tokens[i - 1] * 3 + 1 + random % 3) % kVocab;
  }
  CHECK_OK((*writer)->Append(tokens));
  CHECK((*writer)->Finish().ok());

  JobSpec job;
  job.set_name("small");
  ModelSpec& model = *job.mutable_model();
  model.set_architecture("gpt2");
  model.set_num_hidden_layers(2);
  model.set_hidden_size(24);
  model.set_num_attention_heads(3);
  model.set_vocab_size(kVocab);
  model.set_max_position_embeddings(20);
  job.mutable_data()->set_tokens(path);
  job.mutable_data()->set_validation_fraction(0.2);
  TrainingSpec& training = *job.mutable_training();
  training.set_steps(20);
  training.set_global_batch_size(8);
  training.set_micro_batch_size(8);
  training.set_sequence_length(17);
  training.set_seed(3);
  training.set_validate_every(10);
  training.set_validation_sequences(13);
  job.mutable_optimizer()->set_lr(1e-2);
  job.mutable_lr_scheduler()->set_name("cosine");
  job.mutable_lr_scheduler()->set_warmup_steps(4);
  job.mutable_parallelism()->set_data(1);
  return job;
}

JobSpec SmallLlamaJob() {
  JobSpec job = SmallJob();
  ModelSpec& model = *job.mutable_model();
  model.set_architecture("llama");
  model.set_num_attention_heads(4);
  model.set_num_key_value_heads(2);
  model.set_head_dim(10);
  model.set_intermediate_size(50);
  RopeScaling& scaling = *model.mutable_rope_scaling();
  scaling.set_type("yarn");
  scaling.set_original_max_position_embeddings(10);
  return job;
}

namespace {

// Heads of keys are wider than those of values, and part of them turns; the
// scale of scores follows from the stretched positions.
void SetSmallDeepseek(ModelSpec& model) {
  model.clear_num_key_value_heads();
  model.clear_head_dim();
  model.mutable_rope_scaling()->set_mscale(1);
  model.mutable_rope_scaling()->set_mscale_all_dim(0.8);
  model.set_q_lora_rank(20);
  model.set_kv_lora_rank(14);
  model.set_qk_nope_head_dim(6);
  model.set_qk_rope_head_dim(4);
  model.set_v_head_dim(5);
  model.set_first_k_dense_replace(1);
  model.set_num_experts(6);
  model.set_num_experts_per_tok(2);
  model.set_n_group(3);
  model.set_topk_group(2);
  model.set_moe_intermediate_size(30);
}

}  // namespace

JobSpec SmallJobOf(const std::string& architecture) {
  if (architecture == "gpt2") return SmallJob();
  if (architecture == "gpt_neox") {
    JobSpec job = SmallJob();
    job.mutable_model()->set_architecture(architecture);
    return job;
  }
  if (architecture == "deepseek_v3 with modules") {
    JobSpec job = SmallJobOf("deepseek_v3");
    job.mutable_model()->set_num_nextn_predict_layers(2);
    return job;
  }
  JobSpec job = SmallLlamaJob();
  job.mutable_model()->set_architecture(architecture);
  ModelSpec& model = *job.mutable_model();
  if (architecture == "mistral") model.set_sliding_window(17);
  if (architecture == "mixtral") model.set_num_experts(4);
  if (architecture == "deepseek_v3") SetSmallDeepseek(model);
  if (architecture == "olmoe") {
    model.clear_head_dim();  // of the hidden size
    model.set_num_experts(6);
    model.set_num_experts_per_tok(2);
  }
  if (architecture == "qwen2_moe") {
    model.set_num_experts(6);
    model.set_moe_intermediate_size(30);
    model.set_shared_expert_intermediate_size(50);
  }
  if (architecture == "qwen3_moe") {
    model.set_num_experts(6);
    model.set_num_experts_per_tok(3);
    model.set_moe_intermediate_size(30);
    model.add_mlp_only_layers(0);
  }
  return job;
}

JobSpec WithFewSteps(JobSpec job) {
  job.mutable_training()->set_steps(kFewSteps);
  job.mutable_training()->set_validate_every(kFewSteps / 2);
  job.mutable_lr_scheduler()->set_warmup_steps(2);
  return job;
}

}  // namespace troupe
