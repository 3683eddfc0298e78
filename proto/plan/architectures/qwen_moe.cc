#include "proto/plan/architectures/qwen_moe.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/architectures/llama_family.h"
#include "proto/plan/fields.h"
#include "proto/plan/model_fields.h"

namespace troupe {
namespace {

// Layers that are named, and those between the sparse ones, have an ordinary
// one.
bool HasExperts(const ModelSpec& model, int64_t layer) {
  const auto& dense = model.mlp_only_layers();
  return std::count(dense.begin(), dense.end(), layer) == 0 &&
         (layer + 1) % model.decoder_sparse_step() == 0;
}

}  // namespace

absl::optional<ExpertsSection> QwenExpertsOf(const ModelSpec& model,
                                             int64_t layer) {
  if (!HasExperts(model, layer)) return absl::nullopt;
  const std::string at = absl::StrCat("model.layers.", layer, ".mlp.");
  return ExpertsSection{.router = at + "gate",
                        .gate = at + "experts.*.gate_proj",
                        .up = at + "experts.*.up_proj",
                        .down = at + "experts.*.down_proj",
                        .experts = model.num_experts(),
                        .choices = model.num_experts_per_tok(),
                        .intermediate = model.moe_intermediate_size(),
                        .renormalise = model.norm_topk_prob(),
                        .init_std = model.initializer_range()};
}

std::vector<std::string> QwenMoeFields(std::initializer_list<const char*> own) {
  std::vector<std::string> fields = LlamaFields(
      {"num_experts", "num_experts_per_tok", "moe_intermediate_size",
       "norm_topk_prob", "decoder_sparse_step", "mlp_only_layers", "experts"});
  fields.insert(fields.end(), own.begin(), own.end());
  return fields;
}

absl::Status CheckQwenMoe(const ModelSpec& model) {
  RETURN_IF_ERROR(CheckExperts(model));
  RETURN_IF_ERROR(CheckInteger("model.moe_intermediate_size",
                               model.moe_intermediate_size(),
                               {.min = 1, .max = 4 * kModelWidthMax}));
  RETURN_IF_ERROR(CheckInteger("model.decoder_sparse_step",
                               model.decoder_sparse_step(),
                               {.min = 1, .max = kModelLayersMax}));
  for (const int layer : model.mlp_only_layers()) {
    RETURN_IF_ERROR(
        CheckInteger("model.mlp_only_layers", layer,
                     {.min = 0, .max = model.num_hidden_layers() - 1}));
  }
  return CheckLlama(model);
}

absl::Status ResolveQwenMoe(const QwenMoeDefaults& defaults, ModelSpec& model) {
  if (!model.has_num_experts()) model.set_num_experts(defaults.experts);
  if (!model.has_num_experts_per_tok()) {
    model.set_num_experts_per_tok(
        std::min(defaults.choices, model.num_experts()));
  }
  if (!model.has_moe_intermediate_size()) {
    model.set_moe_intermediate_size(defaults.intermediate);
  }
  if (!model.has_norm_topk_prob()) model.set_norm_topk_prob(false);
  if (!model.has_decoder_sparse_step()) model.set_decoder_sparse_step(1);
  SetExpertsDefaults(model);
  RETURN_IF_ERROR(SetLlamaDefaults(model));
  return CheckQwenMoe(model);
}

}  // namespace troupe
