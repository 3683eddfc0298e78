#include "clients/job_file/suggest.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"

namespace troupe {
namespace {

struct OtherName {
  const char* theirs;
  const char* ours;
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
};

}  // namespace

int EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<std::vector<int>> cost(a.size() + 1,
                                     std::vector<int>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replace = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

std::string OurName(absl::string_view name) {
  for (const OtherName& other : kOtherNames) {
    if (name == other.theirs) return other.ours;
  }
  return std::string(name);
}

std::string Suggest(absl::string_view name,
                    const std::vector<std::string>& candidates) {
  // A name far longer than any field is no typo, and would cost time.
  if (name.empty() || name.size() > 64) return "";
  const std::string lower = absl::AsciiStrToLower(name);
  const std::string ours = OurName(lower);
  std::string best;
  int best_distance = std::max<int>(1, lower.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    if (candidate == ours) return candidate;
    const int distance = EditDistance(lower, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace troupe
