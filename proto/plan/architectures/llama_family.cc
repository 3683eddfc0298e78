#include "proto/plan/architectures/llama_family.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/choices.h"
#include "proto/base/status.h"
#include "proto/plan/batch_sources.h"
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

constexpr char kTokenTable[] = "model.embed_tokens.weight";
constexpr char kProjection[] = "lm_head.weight";

// Of layer `layer`, or of a module behind the last one.
std::string LayerPrefix(int64_t layer) {
  return absl::StrCat("model.layers.", layer, ".");
}

// What modules read comes behind what the first block reads. Hugging Face's
// files may have the table once more with each module, and so the projection.
UnitBuilder Embedding(const ModelSpec& model, const MicroBatchShape& shape,
                      const LlamaOptions& options) {
  UnitBuilder unit(Unit::EMBEDDING, {.index = 0, .shape = shape});
  UnitBuilder::EmbedArgs args = {.tokens = kTokenTable,
                                 .vocabulary = model.vocab_size(),
                                 .hidden = Hidden(model),
                                 .init_std = model.initializer_range()};
  unit.Output(unit.Embed(args));
  for (int k = 1; k <= options.modules; ++k) {
    const BatchTensor ids = BatchTensorAhead(absl::StrCat(kBatchTokens, "+", k),
                                             kTokensSource, k, shape);
    args.ids = &ids;
    unit.Output(unit.Embed(args));
    const std::string at = LayerPrefix(model.num_hidden_layers() + k - 1);
    unit.AlsoIn(kTokenTable, at + "embed_tokens.weight");
    if (!model.tie_word_embeddings()) continue;
    unit.AlsoIn(kTokenTable, at + "shared_head.head.weight");
  }
  return unit;
}

// Queries and keys behind the family's other norms, as attention reads them.
int Normed(const ModelSpec& model, const LlamaOptions& options,
           const std::string& at, int qkv, UnitBuilder& unit) {
  if (options.head_norms) {
    return unit.HeadNorm({.x = qkv,
                          .queries = at + "q_norm",
                          .keys = at + "k_norm",
                          .epsilon = model.rms_norm_eps()});
  }
  if (!options.whole_norms) return qkv;
  const auto norm = [&](int x, const char* name) {
    return unit
        .Norm({.x = x,
               .name = at + name,
               .output = name,
               .root_mean_square = true,
               .epsilon = model.rms_norm_eps()})
        .y;
  };
  const auto [q, kv] = unit.Split(qkv, "q", "kv");
  const auto [k, v] = unit.Split(kv, "k", "v");
  return unit.JoinHeads({.q = norm(q, "q_norm"),
                         .k = norm(k, "k_norm"),
                         .v = v,
                         .values = model.head_dim()});
}

// Of x, which is normed.
int SelfAttention(const ModelSpec& model, const MicroBatchShape& shape,
                  const std::string& at, int x, const LlamaOptions& options,
                  UnitBuilder& unit) {
  if (options.attention != nullptr) {
    return options.attention(model, shape, at, x, unit);
  }
  const Dim heads =
      DimOf({{Dim::HEADS, model.num_attention_heads(), model.head_dim()}});
  const Dim kv_heads = DimOf(
      {{Dim::KEY_VALUE_HEADS, model.num_key_value_heads(), model.head_dim()}});
  const int qkv = unit.Linear({.x = x,
                               .projections = {{at + "q_proj", heads},
                                               {at + "k_proj", kv_heads},
                                               {at + "v_proj", kv_heads}},
                               .output = "qkv",
                               .bias = options.qkv_bias,
                               .init_std = model.initializer_range()});
  const int normed = Normed(model, options, at, qkv, unit);
  const int turned = unit.Rope(RopeOf(model, shape, normed));
  return unit.Linear({.x = unit.Attention(turned),
                      .projections = {{at + "o_proj", Hidden(model)}},
                      .output = "o_proj",
                      .bias = options.output_bias,
                      .init_std = model.initializer_range()});
}

int Mlp(const ModelSpec& model, const std::string& at, int x, bool bias,
        UnitBuilder& unit) {
  const Dim intermediate =
      DimOf({{Dim::INTERMEDIATE, model.intermediate_size()}});
  const int gate_up =
      unit.Linear({.x = x,
                   .projections = {{at + "gate_proj", intermediate},
                                   {at + "up_proj", intermediate}},
                   .output = "gate_up",
                   .bias = bias,
                   .init_std = model.initializer_range()});
  return unit.Linear({.x = unit.SwiGlu(gate_up),
                      .projections = {{at + "down_proj", Hidden(model)}},
                      .output = "down_proj",
                      .bias = bias,
                      .init_std = model.initializer_range()});
}

// What a block makes of x.
int Layer(const ModelSpec& model, const MicroBatchShape& shape, int64_t layer,
          int x, const LlamaOptions& options, UnitBuilder& unit) {
  const std::string at = LayerPrefix(layer);
  const auto norm = [&](int x, int residual, const char* name) {
    return unit.Norm({.x = x,
                      .residual = residual,
                      .name = at + name,
                      .output = name,
                      .root_mean_square = true,
                      .epsilon = model.rms_norm_eps()});
  };
  const int attention =
      SelfAttention(model, shape, at + "self_attn.",
                    norm(x, -1, "input_layernorm").y, options, unit);
  const auto [norm_2, residual] =
      norm(attention, x, "post_attention_layernorm");
  const absl::optional<ExpertsSection> experts =
      options.experts != nullptr ? options.experts(model, layer)
                                 : absl::nullopt;
  const int y = experts.has_value()
                    ? AppendExperts(*experts, model.experts(),
                                    shape.sequence_length, norm_2, unit)
                    : Mlp(model, at + "mlp.", norm_2, options.mlp_bias, unit);
  return unit.Add({.x = y, .residual = residual});
}

UnitBuilder Block(const ModelSpec& model, const MicroBatchShape& shape,
                  int64_t layer, const LlamaOptions& options) {
  UnitBuilder unit(Unit::BLOCK,
                   {.index = 1 + layer, .layer = layer, .shape = shape});
  const int x = unit.Input(Hidden(model));
  unit.Output(Layer(model, shape, layer, x, options, unit));
  return unit;
}

UnitBuilder Head(const ModelSpec& model, const MicroBatchShape& shape,
                 const LlamaOptions& options) {
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
             .weight = kProjection,
             .tied_to = tied ? kTokenTable : "",
             .vocabulary = model.vocab_size(),
             .init_std = model.initializer_range()});
  if (options.modules > 0) unit.Output(norm);
  for (int k = 0; k < options.modules && !tied; ++k) {
    unit.AlsoIn(kProjection, LayerPrefix(model.num_hidden_layers() + k) +
                                 "shared_head.head.weight");
  }
  return unit;
}

// Module k, from 1: it predicts the token k places behind the next one.
UnitBuilder Module(const ModelSpec& model, const MicroBatchShape& shape, int k,
                   const LlamaOptions& options) {
  const int64_t head = 1 + model.num_hidden_layers();
  const int64_t layer = model.num_hidden_layers() + k - 1;
  const std::string at = LayerPrefix(layer);
  UnitBuilder unit(Unit::BLOCK,
                   {.index = head + k, .layer = layer, .shape = shape});
  const auto norm = [&](int x, const char* name) {
    return unit
        .Norm({.x = x,
               .name = at + name,
               .output = name,
               .root_mean_square = true,
               .epsilon = model.rms_norm_eps()})
        .y;
  };
  const int before = unit.Input(Hidden(model));
  const TensorSpec made = unit.table().tensors(before);
  Unit::Source embedding;
  embedding.set_output(k);
  const int embedded = norm(unit.Input(embedding, made), "enorm");
  const int both = unit.Concat(embedded, norm(before, "hnorm"), "both");
  const int x = unit.Linear({.x = both,
                             .projections = {{at + "eh_proj", Hidden(model)}},
                             .output = "eh_proj",
                             .init_std = model.initializer_range()});
  const int y =
      norm(Layer(model, shape, layer, x, options, unit), "shared_head.norm");
  const bool tied = model.tie_word_embeddings();
  const BatchTensor targets = BatchTensorAhead(
      absl::StrCat(kBatchTargets, "+", k), kNextTokensSource, k, shape);
  unit.Loss({.x = y,
             .targets = &targets,
             .tied_to = tied ? kTokenTable : kProjection,
             .tied_unit = tied ? 0 : static_cast<int>(head),
             .vocabulary = model.vocab_size(),
             .added_weight = options.module_weight});
  if (k < options.modules) unit.Output(y);
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
  units.Append(Embedding(model, shape, options));
  for (int64_t layer = 0; layer < model.num_hidden_layers(); ++layer) {
    units.Append(Block(model, shape, layer, options));
  }
  units.Append(Head(model, shape, options));
  for (int k = 1; k <= options.modules; ++k) {
    units.Append(Module(model, shape, k, options));
  }
  return units;
}

UnitBuilder::RopeArgs RopeOf(const ModelSpec& model,
                             const MicroBatchShape& shape, int x) {
  return {.x = x,
          .training = RopeFrequencies(model, shape.sequence_length),
          .decoding = RopeFrequencies(model, model.max_position_embeddings())};
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
