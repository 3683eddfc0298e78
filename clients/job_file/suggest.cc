#include "clients/job_file/suggest.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "proto/base/closest.h"

namespace troupe {
namespace {

struct OtherName {
  const char* theirs;
  const char* ours;
  // Said only where the section has ours; elsewhere theirs is a name of ours,
  // too.
  bool only_here = false;
};

constexpr OtherName kOtherNames[] = {
    {"n_layer", "num_hidden_layers"},
    {"n_layers", "num_hidden_layers"},
    {"num_layers", "num_hidden_layers"},
    {"layers", "num_hidden_layers"},
    {"n_embd", "hidden_size"},
    {"d_model", "hidden_size"},
    {"n_head", "num_attention_heads"},
    {"n_heads", "num_attention_heads"},
    {"num_heads", "num_attention_heads"},
    {"heads", "num_attention_heads"},
    {"n_positions", "max_position_embeddings"},
    {"n_ctx", "max_position_embeddings"},
    {"block_size", "max_position_embeddings"},
    {"n_inner", "intermediate_size"},
    {"ffn_hidden_size", "intermediate_size"},
    {"vocabulary_size", "vocab_size"},
    {"model_type", "architecture"},
    {"learning_rate", "lr"},
    {"beta1", "betas"},
    {"beta2", "betas"},
    {"epsilon", "eps"},
    {"warmup", "warmup_steps"},
    {"max_steps", "steps"},
    {"train_iters", "steps"},
    {"batch_size", "global_batch_size"},
    {"max_length", "sequence_length"},
    {"seq_len", "sequence_length"},
    {"seq_length", "sequence_length"},
    {"dtype", "precision"},
    {"max_grad_norm", "gradient_clipping"},
    {"clip_grad", "gradient_clipping"},
    {"eval_interval", "validate_every"},
    {"data_parallel", "data"},
    {"data_parallel_size", "data"},
    {"dp", "data"},
    {"expert_model_parallel_size", "expert"},
    {"expert_parallel_size", "expert"},
    {"ep_size", "expert"},
    {"ep", "expert"},
    {"data", "batch", /*only_here=*/true},
};

}  // namespace

std::string OurName(absl::string_view name) {
  for (const OtherName& other : kOtherNames) {
    if (name == other.theirs && !other.only_here) return other.ours;
  }
  return std::string(name);
}

std::string Suggest(absl::string_view name,
                    const std::vector<std::string>& candidates) {
  // A name far longer than any field is no typo, and would cost time.
  if (name.size() > 64) return "";
  const std::string lower = absl::AsciiStrToLower(name);
  const auto is_there = [&candidates](const std::string& ours) {
    return std::count(candidates.begin(), candidates.end(), ours) > 0;
  };
  if (is_there(lower)) return lower;
  for (const OtherName& other : kOtherNames) {
    if (lower == other.theirs && is_there(other.ours)) return other.ours;
  }
  return ClosestName(name, candidates);
}

}  // namespace troupe
