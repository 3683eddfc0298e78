#include "proto/plan/architectures/llama_family.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/choices.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/model_fields.h"
#include "proto/plan/rope.h"
#include "proto/plan/rope_fields.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

Dim Hidden(const ModelSpec& model) {
  return DimOf({{Dim::HIDDEN, model.hidden_size()}});
}

UnitBuilder Embedding(const ModelSpec& model, const MicroBatchShape& shape) {
  UnitBuilder unit(Unit::EMBEDDING, {.index = 0, .shape = shape});
  unit.Output(unit.Embed({.tokens = "model.embed_tokens.weight",
                          .vocabulary = model.vocab_size(),
                          .hidden = Hidden(model),
                          .init_std = model.initializer_range()}));
  return unit;
}

UnitBuilder Block(const ModelSpec& model, const MicroBatchShape& shape,
                  int64_t layer, const LlamaOptions& options) {
  UnitBuilder unit(Unit::BLOCK,
                   {.index = 1 + layer, .layer = layer, .shape = shape});
  const std::string at = absl::StrCat("model.layers.", layer, ".");
  const std::string attn = at + "self_attn.";
  const std::string mlp = at + "mlp.";
  const Dim heads =
      DimOf({{Dim::HEADS, model.num_attention_heads(), model.head_dim()}});
  const Dim kv_heads = DimOf(
      {{Dim::KEY_VALUE_HEADS, model.num_key_value_heads(), model.head_dim()}});
  const Dim intermediate =
      DimOf({{Dim::INTERMEDIATE, model.intermediate_size()}});
  const auto norm = [&](int x, int residual, const char* name) {
    return unit.Norm({.x = x,
                      .residual = residual,
                      .name = at + name,
                      .output = name,
                      .root_mean_square = true,
                      .epsilon = model.rms_norm_eps()});
  };
  const auto linear = [&](int x, const char* output, bool bias,
                          std::vector<UnitBuilder::Projection> projections) {
    return unit.Linear({.x = x,
                        .projections = std::move(projections),
                        .output = output,
                        .bias = bias,
                        .init_std = model.initializer_range()});
  };

  const int x = unit.Input(Hidden(model));
  const int qkv =
      linear(norm(x, -1, "input_layernorm").y, "qkv", options.qkv_bias,
             {{attn + "q_proj", heads},
              {attn + "k_proj", kv_heads},
              {attn + "v_proj", kv_heads}});
  const int normed = options.head_norms
                         ? unit.HeadNorm({.x = qkv,
                                          .queries = attn + "q_norm",
                                          .keys = attn + "k_norm",
                                          .epsilon = model.rms_norm_eps()})
                         : qkv;
  const int turned = unit.Rope(
      {.x = normed,
       .training = RopeFrequencies(model, shape.sequence_length),
       .decoding = RopeFrequencies(model, model.max_position_embeddings())});
  const int attention =
      linear(unit.Attention(turned), "o_proj", options.output_bias,
             {{attn + "o_proj", Hidden(model)}});
  const auto [norm_2, residual] =
      norm(attention, x, "post_attention_layernorm");
  const absl::optional<ExpertsSection> experts =
      options.experts != nullptr ? options.experts(model, layer)
                                 : absl::nullopt;
  if (experts.has_value()) {
    unit.Output(
        unit.Add({.x = AppendExperts(*experts, model.experts(),
                                     shape.sequence_length, norm_2, unit),
                  .residual = residual}));
    return unit;
  }
  const int gate_up = linear(
      norm_2, "gate_up", options.mlp_bias,
      {{mlp + "gate_proj", intermediate}, {mlp + "up_proj", intermediate}});
  const int down = linear(unit.SwiGlu(gate_up), "down_proj", options.mlp_bias,
                          {{mlp + "down_proj", Hidden(model)}});
  unit.Output(unit.Add({.x = down, .residual = residual}));
  return unit;
}

UnitBuilder Head(const ModelSpec& model, const MicroBatchShape& shape) {
  const bool tied = model.tie_word_embeddings();
  UnitBuilder unit(Unit::HEAD,
                   {.index = 1 + model.num_hidden_layers(), .shape = shape});
  const int norm = unit.Norm({.x = unit.Input(Hidden(model)),
                              .name = "model.norm",
                              .output = "norm",
                              .root_mean_square = true,
                              .epsilon = model.rms_norm_eps()})
                       .y;
  unit.Loss({.x = norm,
             .weight = "lm_head.weight",
             .tied_to = tied ? "model.embed_tokens.weight" : "",
             .vocabulary = model.vocab_size(),
             .init_std = model.initializer_range()});
  return unit;
}

absl::Status CheckHeads(const ModelSpec& model) {
  const int64_t heads = model.num_attention_heads();
  const int64_t kv_heads = model.num_key_value_heads();
  RETURN_IF_ERROR(CheckInteger("model.num_key_value_heads", kv_heads,
                               {.min = 1, .max = heads}));
  if (heads % kv_heads != 0) {
    return FieldError(
        "model.num_key_value_heads",
        absl::StrCat(kv_heads, " does not divide model.num_attention_heads ",
                     heads, "; use ", DivisorsText(heads, kv_heads)));
  }
  RETURN_IF_ERROR(CheckInteger("model.head_dim", model.head_dim(),
                               {.min = 2, .max = 16 * kModelWidthMax / heads}));
  if (model.head_dim() % 2 == 0) return absl::OkStatus();
  return FieldError("model.head_dim",
                    absl::StrCat(model.head_dim(),
                                 " is odd, but positions rotate pairs of "
                                 "numbers; use an even one"));
}

}  // namespace

UnitList LlamaUnits(const ModelSpec& model, const MicroBatchShape& shape,
                    const LlamaOptions& options) {
  UnitList units;
  units.Append(Embedding(model, shape));
  for (int64_t layer = 0; layer < model.num_hidden_layers(); ++layer) {
    units.Append(Block(model, shape, layer, options));
  }
  units.Append(Head(model, shape));
  return units;
}

std::vector<std::string> LlamaFields(std::initializer_list<const char*> own) {
  std::vector<std::string> fields = {"num_key_value_heads", "head_dim",
                                     "rms_norm_eps", "rope_theta",
                                     "rope_scaling"};
  fields.insert(fields.end(), own.begin(), own.end());
  return fields;
}

absl::Status CheckLlama(const ModelSpec& model) {
  RETURN_IF_ERROR(CheckHeads(model));
  RETURN_IF_ERROR(CheckNumber("model.rms_norm_eps", model.rms_norm_eps(),
                              {.min = 0, .max = 1, .min_open = true}));
  return CheckRope(model);
}

absl::Status SetLlamaDefaults(ModelSpec& model) {
  if (!model.has_num_key_value_heads()) {
    model.set_num_key_value_heads(model.num_attention_heads());
  }
  if (!model.has_head_dim()) {
    RETURN_IF_ERROR(CheckHeadsDivideWidth(model));
    model.set_head_dim(model.hidden_size() / model.num_attention_heads());
  }
  if (!model.has_rms_norm_eps()) model.set_rms_norm_eps(1e-6);
  if (!model.has_tie_word_embeddings()) model.set_tie_word_embeddings(false);
  SetRopeDefaults(model);
  return absl::OkStatus();
}

}  // namespace troupe
