// DeepSeek-V3 (arXiv 2412.19437): Llama's block with multi-head latent
// attention; experts with sigmoid scores in most layers, beside shared ones.
//
// Queries, and keys and values, of all heads are made of a few columns, the
// latents, which are normed. Of a head's columns some do not turn; those that
// do are one key for all heads (section 2.1.1):
//
//   q latents, kv latents, shared key = split(W_a x)
//   q = W_qb norm(q latents);  k, v = W_kvb norm(kv latents)
//   attention(rope(q), rope([shared key, k]), v)
//
// Modules that predict further tokens (section 2.2): llama_family.h.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "proto/base/choices.h"
#include "proto/base/status.h"
#include "proto/plan/architectures/architecture.h"
#include "proto/plan/architectures/experts_section.h"
#include "proto/plan/architectures/llama_family.h"
#include "proto/plan/fields.h"
#include "proto/plan/model_fields.h"
#include "proto/plan/ports.h"
#include "proto/plan/rope_fields.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

int64_t KeyWidth(const ModelSpec& model) {
  return model.qk_nope_head_dim() + model.qk_rope_head_dim();
}

// Of scores. Where positions are stretched (yarn) they grow by the square of
// its factor, as each of queries and keys would.
double ScaleOf(const ModelSpec& model) {
  const double scale = 1 / std::sqrt(static_cast<double>(KeyWidth(model)));
  const RopeScaling& scaling = model.rope_scaling();
  if (scaling.mscale_all_dim() == 0 || scaling.factor() <= 1) return scale;
  const double magnitude =
      0.1 * scaling.mscale_all_dim() * std::log(scaling.factor()) + 1;
  return scale * magnitude * magnitude;
}

int Attention(const ModelSpec& model, const MicroBatchShape& shape,
              const std::string& at, int x, UnitBuilder& unit) {
  // transformers' default, whatever rms_norm_eps is.
  constexpr double kLatentEpsilon = 1e-6;
  const int64_t heads = model.num_attention_heads();
  const Dim queries = DimOf({{Dim::HEADS, heads, KeyWidth(model)}});
  const Dim keys_and_values =
      DimOf({{Dim::KEY_VALUE_HEADS, heads,
              model.qk_nope_head_dim() + model.v_head_dim()}});
  const Dim of_keys = DimOf({{Dim::LATENT, model.kv_lora_rank()},
                             {Dim::HEAD_COLUMNS, model.qk_rope_head_dim()}});
  const auto linear = [&](int in, const char* output, bool bias,
                          std::vector<UnitBuilder::Projection> projections) {
    return unit.Linear({.x = in,
                        .projections = std::move(projections),
                        .output = output,
                        .bias = bias,
                        .init_std = model.initializer_range()});
  };
  const auto norm = [&](int in, const char* name) {
    return unit
        .Norm({.x = in,
               .name = at + name,
               .output = name,
               .root_mean_square = true,
               .epsilon = kLatentEpsilon})
        .y;
  };
  const bool bias = model.attention_bias();
  const UnitBuilder::Projection a_of_keys = {at + "kv_a_proj_with_mqa",
                                             of_keys};
  int q = -1, latents_of_keys = -1;
  if (model.q_lora_rank() == 0) {
    q = linear(x, "q", false, {{at + "q_proj", queries}});
    latents_of_keys = linear(x, "kv latents", bias, {a_of_keys});
  } else {
    const Dim of_queries = DimOf({{Dim::LATENT, model.q_lora_rank()}});
    const auto [of_q, rest] = unit.Split(
        linear(x, "latents", bias, {{at + "q_a_proj", of_queries}, a_of_keys}),
        "q latents", "kv latents");
    q = linear(norm(of_q, "q_a_layernorm"), "q", false,
               {{at + "q_b_proj", queries}});
    latents_of_keys = rest;
  }
  const auto [latents, shared] =
      unit.Split(latents_of_keys, "latents of keys", "shared key");
  const int kv = linear(norm(latents, "kv_a_layernorm"), "kv", false,
                        {{at + "kv_b_proj", keys_and_values}});
  const int qkv = unit.JoinHeads({.q = q,
                                  .k = kv,
                                  .shared = shared,
                                  .values = model.v_head_dim(),
                                  .interleaved = model.rope_interleave()});
  return linear(
      unit.Attention(unit.Rope(RopeOf(model, shape, qkv)), ScaleOf(model)),
      "o_proj", bias,
      {{at + "o_proj", DimOf({{Dim::HIDDEN, model.hidden_size()}})}});
}

absl::optional<ExpertsSection> ExpertsOf(const ModelSpec& model,
                                         int64_t layer) {
  if (layer < model.first_k_dense_replace()) return absl::nullopt;
  const std::string at = absl::StrCat("model.layers.", layer, ".mlp.");
  ExpertsSection section = {.router = at + "gate",
                            .gate = at + "experts.*.gate_proj",
                            .up = at + "experts.*.up_proj",
                            .down = at + "experts.*.down_proj",
                            .experts = model.num_experts(),
                            .choices = model.num_experts_per_tok(),
                            .intermediate = model.moe_intermediate_size(),
                            .renormalise = model.norm_topk_prob(),
                            .sigmoid = true,
                            .scale = model.routed_scaling_factor(),
                            .groups = model.n_group(),
                            .groups_used = model.topk_group(),
                            .bias = true,
                            .init_std = model.initializer_range()};
  if (model.n_shared_experts() > 0) {
    section.shared = {.gate = at + "shared_experts.gate_proj",
                      .up = at + "shared_experts.up_proj",
                      .down = at + "shared_experts.down_proj",
                      .intermediate = int64_t{model.n_shared_experts()} *
                                      model.moe_intermediate_size()};
  }
  return section;
}

absl::StatusOr<UnitList> Units(const ModelSpec& model,
                               const MicroBatchShape& shape) {
  const int modules = model.num_nextn_predict_layers();
  const double weight = model.mtp_coefficient() / std::max(1, modules);
  return LlamaUnits(model, shape,
                    {.attention = Attention,
                     .experts = ExpertsOf,
                     .modules = modules,
                     .module_weight = weight});
}

absl::StatusOr<int> CountUnits(const ModelSpec& model) {
  return model.num_hidden_layers() + 2 + model.num_nextn_predict_layers();
}

// Each is a tensor that the embedding makes, beside that of the model itself.
constexpr int kModulesMax = kPortsMax - 1;

absl::Status CheckModules(const ModelSpec& model) {
  RETURN_IF_ERROR(CheckInteger("model.num_nextn_predict_layers",
                               model.num_nextn_predict_layers(),
                               {.min = 0, .max = kModulesMax}));
  if (model.num_nextn_predict_layers() == 0 && model.has_mtp_coefficient()) {
    return FieldError("model.mtp_coefficient",
                      "is of modules that predict further tokens, and there "
                      "are none; set model.num_nextn_predict_layers as well");
  }
  if (model.num_nextn_predict_layers() == 0) return absl::OkStatus();
  return CheckNumber("model.mtp_coefficient", model.mtp_coefficient(),
                     {.min = 0, .max = 1e6, .min_open = true});
}

absl::Status CheckWidths(const ModelSpec& model) {
  const int64_t most =
      16 * int64_t{kModelWidthMax} / model.num_attention_heads();
  RETURN_IF_ERROR(CheckInteger("model.q_lora_rank", model.q_lora_rank(),
                               {.min = 0, .max = kModelWidthMax}));
  RETURN_IF_ERROR(CheckInteger("model.kv_lora_rank", model.kv_lora_rank(),
                               {.min = 1, .max = kModelWidthMax}));
  RETURN_IF_ERROR(CheckInteger("model.qk_nope_head_dim",
                               model.qk_nope_head_dim(),
                               {.min = 1, .max = most}));
  RETURN_IF_ERROR(CheckInteger("model.qk_rope_head_dim",
                               model.qk_rope_head_dim(),
                               {.min = 2, .max = most}));
  RETURN_IF_ERROR(CheckInteger("model.v_head_dim", model.v_head_dim(),
                               {.min = 1, .max = most}));
  if (model.qk_rope_head_dim() % 2 == 0) return absl::OkStatus();
  return FieldError("model.qk_rope_head_dim",
                    absl::StrCat(model.qk_rope_head_dim(),
                                 " is odd, but positions rotate pairs of "
                                 "numbers; use an even one"));
}

// Of choices, all must be among the experts of the blocks that are looked at.
absl::Status CheckGroups(const ModelSpec& model) {
  const int experts = model.num_experts(), groups = model.n_group();
  RETURN_IF_ERROR(
      CheckInteger("model.n_group", groups, {.min = 1, .max = experts}));
  if (experts % groups != 0) {
    return FieldError(
        "model.n_group",
        absl::StrCat(groups, " does not divide model.num_experts ", experts,
                     "; use ", DivisorsText(experts, groups)));
  }
  RETURN_IF_ERROR(CheckInteger("model.topk_group", model.topk_group(),
                               {.min = 1, .max = groups}));
  const int seen = experts / groups * model.topk_group();
  if (model.num_experts_per_tok() <= seen) return absl::OkStatus();
  return FieldError(
      "model.topk_group",
      absl::StrCat("the ", seen, " experts of ", model.topk_group(), " of ",
                   groups, " groups are fewer than model.num_experts_per_tok ",
                   model.num_experts_per_tok(), "; use more groups"));
}

absl::Status Check(const ModelSpec& model) {
  RETURN_IF_ERROR(CheckExperts(model));
  RETURN_IF_ERROR(CheckGroups(model));
  RETURN_IF_ERROR(CheckWidths(model));
  RETURN_IF_ERROR(CheckModules(model));
  RETURN_IF_ERROR(CheckInteger("model.moe_intermediate_size",
                               model.moe_intermediate_size(),
                               {.min = 1, .max = 4 * kModelWidthMax}));
  RETURN_IF_ERROR(CheckInteger("model.n_shared_experts",
                               model.n_shared_experts(),
                               {.min = 0, .max = kExpertsMax}));
  RETURN_IF_ERROR(CheckInteger("model.first_k_dense_replace",
                               model.first_k_dense_replace(),
                               {.min = 0, .max = kModelLayersMax}));
  RETURN_IF_ERROR(CheckNumber("model.routed_scaling_factor",
                              model.routed_scaling_factor(),
                              {.min = 0, .max = 1e6, .min_open = true}));
  RETURN_IF_ERROR(CheckNumber("model.rms_norm_eps", model.rms_norm_eps(),
                              {.min = 0, .max = 1, .min_open = true}));
  return CheckRope(model);
}

void SetSizes(ModelSpec& model) {
  struct Size {
    bool (ModelSpec::*has)() const;
    void (ModelSpec::*set)(int);
    int value;
  };
  constexpr Size kSizes[] = {
      {&ModelSpec::has_q_lora_rank, &ModelSpec::set_q_lora_rank, 1536},
      {&ModelSpec::has_kv_lora_rank, &ModelSpec::set_kv_lora_rank, 512},
      {&ModelSpec::has_qk_nope_head_dim, &ModelSpec::set_qk_nope_head_dim, 128},
      {&ModelSpec::has_qk_rope_head_dim, &ModelSpec::set_qk_rope_head_dim, 64},
      {&ModelSpec::has_v_head_dim, &ModelSpec::set_v_head_dim, 128},
      {&ModelSpec::has_first_k_dense_replace,
       &ModelSpec::set_first_k_dense_replace, 3},
      {&ModelSpec::has_n_shared_experts, &ModelSpec::set_n_shared_experts, 1},
      {&ModelSpec::has_num_experts, &ModelSpec::set_num_experts, 256},
      {&ModelSpec::has_num_experts_per_tok, &ModelSpec::set_num_experts_per_tok,
       8},
      {&ModelSpec::has_moe_intermediate_size,
       &ModelSpec::set_moe_intermediate_size, 2048},
      {&ModelSpec::has_n_group, &ModelSpec::set_n_group, 8},
      {&ModelSpec::has_topk_group, &ModelSpec::set_topk_group, 4},
  };
  for (const Size& size : kSizes) {
    if (!(model.*size.has)()) (model.*size.set)(size.value);
  }
}

absl::Status Resolve(ModelSpec& model) {
  constexpr double kGateScale = 2.5;
  constexpr double kModulesScale = 0.3;  // most of the training, section 4.2
  SetSizes(model);
  if (!model.has_num_nextn_predict_layers()) {
    model.set_num_nextn_predict_layers(0);
  }
  if (model.num_nextn_predict_layers() > 0 && !model.has_mtp_coefficient()) {
    model.set_mtp_coefficient(kModulesScale);
  }
  if (!model.has_routed_scaling_factor()) {
    model.set_routed_scaling_factor(kGateScale);
  }
  if (!model.has_norm_topk_prob()) model.set_norm_topk_prob(true);
  if (!model.has_rope_interleave()) model.set_rope_interleave(true);
  if (!model.has_attention_bias()) model.set_attention_bias(false);
  if (!model.has_rms_norm_eps()) model.set_rms_norm_eps(1e-6);
  if (!model.has_tie_word_embeddings()) model.set_tie_word_embeddings(false);
  ExpertsSpec& experts = *model.mutable_experts();
  if (!experts.has_balance()) experts.set_balance("bias");
  SetExpertsDefaults(model);
  SetRopeDefaults(model);
  return Check(model);
}

}  // namespace

Architecture DeepseekV3() {
  return {.name = "deepseek_v3",
          .fields = {"q_lora_rank",
                     "kv_lora_rank",
                     "qk_nope_head_dim",
                     "qk_rope_head_dim",
                     "v_head_dim",
                     "rope_interleave",
                     "attention_bias",
                     "rms_norm_eps",
                     "rope_theta",
                     "rope_scaling",
                     "first_k_dense_replace",
                     "n_shared_experts",
                     "num_experts",
                     "num_experts_per_tok",
                     "moe_intermediate_size",
                     "norm_topk_prob",
                     "n_group",
                     "topk_group",
                     "routed_scaling_factor",
                     "num_nextn_predict_layers",
                     "mtp_coefficient",
                     "experts"},
          .resolve = Resolve,
          .check = Check,
          .units = Units,
          .count = CountUnits,
          .layers_behind = true};
}

}  // namespace troupe
