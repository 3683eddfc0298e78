// OLMoE (Muennighoff et al., arXiv 2409.02060): Llama's block with norms of all
// queries and of all keys of a token before they turn; the feed-forward part of
// every layer is a mixture of experts.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/architectures/architecture.h"
#include "proto/plan/architectures/experts_section.h"
#include "proto/plan/architectures/llama_family.h"
#include "proto/plan/fields.h"

namespace troupe {
namespace {

absl::optional<ExpertsSection> ExpertsOf(const ModelSpec& model,
                                         int64_t layer) {
  const std::string at = absl::StrCat("model.layers.", layer, ".mlp.");
  return ExpertsSection{.router = at + "gate",
                        .gate = at + "experts.*.gate_proj",
                        .up = at + "experts.*.up_proj",
                        .down = at + "experts.*.down_proj",
                        .experts = model.num_experts(),
                        .choices = model.num_experts_per_tok(),
                        .intermediate = model.intermediate_size(),
                        .renormalise = model.norm_topk_prob(),
                        .init_std = model.initializer_range()};
}

absl::StatusOr<UnitList> Units(const ModelSpec& model,
                               const MicroBatchShape& shape) {
  return LlamaUnits(model, shape,
                    {.qkv_bias = model.attention_bias(),
                     .output_bias = model.attention_bias(),
                     .whole_norms = true,
                     .experts = ExpertsOf});
}

absl::Status Check(const ModelSpec& model) {
  RETURN_IF_ERROR(CheckExperts(model));
  RETURN_IF_ERROR(CheckLlama(model));
  const int64_t heads = model.num_attention_heads();
  if (heads * model.head_dim() == model.hidden_size()) return absl::OkStatus();
  return FieldError(
      "model.head_dim",
      absl::StrCat(model.head_dim(), " columns of ", heads, " heads are not ",
                   "model.hidden_size ", model.hidden_size(),
                   ", which the norm of queries has; leave it out"));
}

absl::Status Resolve(ModelSpec& model) {
  constexpr int kExperts = 64;
  constexpr int kChoices = 8;
  constexpr double kEpsilon = 1e-5;
  if (!model.has_num_experts()) model.set_num_experts(kExperts);
  if (!model.has_num_experts_per_tok()) {
    model.set_num_experts_per_tok(std::min(kChoices, model.num_experts()));
  }
  if (!model.has_norm_topk_prob()) model.set_norm_topk_prob(false);
  if (!model.has_attention_bias()) model.set_attention_bias(false);
  if (!model.has_rms_norm_eps()) model.set_rms_norm_eps(kEpsilon);
  SetExpertsDefaults(model);
  RETURN_IF_ERROR(SetLlamaDefaults(model));
  return Check(model);
}

}  // namespace

Architecture Olmoe() {
  return {
      .name = "olmoe",
      .fields = LlamaFields({"num_experts", "num_experts_per_tok",
                             "norm_topk_prob", "attention_bias", "experts"}),
      .resolve = Resolve,
      .check = Check,
      .units = Units};
}

}  // namespace troupe
