// GPT-NeoX (Black et al., arXiv 2204.06745) and Pythia: LayerNorms, rotary
// positions in a part of each head, and both layers of a block beside each
// other, or, without use_parallel_residual, one after the other:
//
//   y = x + dropout(attention(norm_1(x))) + dropout(mlp(norm_2(x)))
//   r = x + dropout(attention(norm_1(x)));  y = r + dropout(mlp(norm_2(r)))
//
// Hugging Face keeps the weights of queries, keys and values in one tensor,
// head by head; here they are three, side by side as in other models.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/choices.h"
#include "proto/base/status.h"
#include "proto/plan/architectures/architecture.h"
#include "proto/plan/fields.h"
#include "proto/plan/model_fields.h"
#include "proto/plan/rope.h"
#include "proto/plan/rope_fields.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

constexpr char kExactGelu[] = "gelu";
constexpr char kTanhGelu[] = "gelu_new";

Dim Hidden(const ModelSpec& model) {
  return DimOf({{Dim::HIDDEN, model.hidden_size()}});
}

UnitBuilder Embedding(const ModelSpec& model, const MicroBatchShape& shape) {
  UnitBuilder unit(Unit::EMBEDDING, {.index = 0, .shape = shape});
  unit.Output(
      unit.Dropout(unit.Embed({.tokens = "gpt_neox.embed_in.weight",
                               .vocabulary = model.vocab_size(),
                               .hidden = Hidden(model),
                               .init_std = model.initializer_range()})));
  return unit;
}

// The layers of a block, appended to its unit.
class Block {
 public:
  Block(const ModelSpec& model, const MicroBatchShape& shape, int64_t layer,
        UnitBuilder& unit)
      : model_(model),
        shape_(shape),
        at_(absl::StrCat("gpt_neox.layers.", layer, ".")),
        unit_(unit) {}

  void Append() {
    const int x = unit_.Input(Hidden(model_));
    const int attention = Attention(Norm(x, -1, "input_layernorm").y);
    const char* const norm = "post_attention_layernorm";
    if (!model_.use_parallel_residual()) {
      const auto [norm_2, sum] = Norm(unit_.Dropout(attention), x, norm);
      const int mlp = Mlp(norm_2);
      unit_.Output(unit_.Add({.x = unit_.Dropout(mlp), .residual = sum}));
      return;
    }
    // x is read by both norms before it is added to.
    const int mlp = Mlp(Norm(x, -1, norm).y);
    const int sum = unit_.Add({.x = unit_.Dropout(attention), .residual = x});
    unit_.Output(unit_.Add({.x = unit_.Dropout(mlp), .residual = sum}));
  }

 private:
  UnitBuilder::NormOutputs Norm(int x, int residual, const char* name) {
    return unit_.Norm({.x = x,
                       .residual = residual,
                       .name = at_ + name,
                       .output = name,
                       .epsilon = model_.layer_norm_epsilon()});
  }

  int Linear(int x, const char* output, bool bias,
             std::vector<UnitBuilder::Projection> projections) {
    return unit_.Linear({.x = x,
                         .projections = std::move(projections),
                         .output = output,
                         .bias = bias,
                         .init_std = model_.initializer_range()});
  }

  int Attention(int x) {
    const bool bias = model_.attention_bias();
    const int64_t heads = model_.num_attention_heads();
    const int64_t width = model_.hidden_size() / heads;
    const Dim queries = DimOf({{Dim::HEADS, heads, width}});
    const Dim keys = DimOf({{Dim::KEY_VALUE_HEADS, heads, width}});
    const std::string attention = at_ + "attention.";
    const std::string all = attention + "query_key_value";
    const int qkv = Linear(x, "query_key_value", bias,
                           {{attention + "query", queries, all},
                            {attention + "key", keys, all},
                            {attention + "value", keys, all}});
    const int turned =
        unit_.Rope({.x = qkv,
                    .training = RopeFrequencies(model_, shape_.sequence_length),
                    .decoding = RopeFrequencies(
                        model_, model_.max_position_embeddings())});
    return Linear(unit_.Attention(turned), "dense", bias,
                  {{attention + "dense", Hidden(model_)}});
  }

  int Mlp(int x) {
    const Dim intermediate =
        DimOf({{Dim::INTERMEDIATE, model_.intermediate_size()}});
    const int inner = Linear(x, "dense_h_to_4h", true,
                             {{at_ + "mlp.dense_h_to_4h", intermediate}});
    return Linear(unit_.Gelu(inner, model_.hidden_act() == kExactGelu),
                  "dense_4h_to_h", true,
                  {{at_ + "mlp.dense_4h_to_h", Hidden(model_)}});
  }

  const ModelSpec& model_;
  const MicroBatchShape& shape_;
  const std::string at_;
  UnitBuilder& unit_;
};

UnitBuilder Head(const ModelSpec& model, const MicroBatchShape& shape) {
  const bool tied = model.tie_word_embeddings();
  UnitBuilder unit(Unit::HEAD,
                   {.index = 1 + model.num_hidden_layers(), .shape = shape});
  const int norm = unit.Norm({.x = unit.Input(Hidden(model)),
                              .name = "gpt_neox.final_layer_norm",
                              .output = "final_layer_norm",
                              .epsilon = model.layer_norm_epsilon()})
                       .y;
  unit.Loss({.x = norm,
             .weight = "embed_out.weight",
             .tied_to = tied ? "gpt_neox.embed_in.weight" : "",
             .vocabulary = model.vocab_size(),
             .init_std = model.initializer_range()});
  return unit;
}

absl::StatusOr<UnitList> Units(const ModelSpec& model,
                               const MicroBatchShape& shape) {
  UnitList units;
  units.Append(Embedding(model, shape));
  for (int64_t layer = 0; layer < model.num_hidden_layers(); ++layer) {
    UnitBuilder block(Unit::BLOCK, {.index = 1 + layer,
                                    .layer = layer,
                                    .first_mask = 1,  // behind the embedding's
                                    .shape = shape});
    Block(model, shape, layer, block).Append();
    units.Append(std::move(block));
  }
  units.Append(Head(model, shape));
  return units;
}

absl::Status CheckTurned(const ModelSpec& model) {
  constexpr char kPath[] = "model.partial_rotary_factor";
  RETURN_IF_ERROR(CheckNumber(kPath, model.partial_rotary_factor(),
                              {.min = 0, .max = 1, .min_open = true}));
  const int64_t columns = RotaryColumns(model);
  if (columns >= 2 && columns % 2 == 0) return absl::OkStatus();
  return FieldError(
      kPath, absl::StrCat(model.partial_rotary_factor(), " of heads of ",
                          model.hidden_size() / model.num_attention_heads(),
                          " columns turns ", columns,
                          ", but positions rotate pairs of numbers; use one "
                          "that turns an even number of 2 or more"));
}

absl::Status Check(const ModelSpec& model) {
  RETURN_IF_ERROR(CheckHeadsDivideWidth(model));
  RETURN_IF_ERROR(CheckNumber("model.layer_norm_epsilon",
                              model.layer_norm_epsilon(),
                              {.min = 0, .max = 1, .min_open = true}));
  RETURN_IF_ERROR(CheckName("model.hidden_act", model.hidden_act(),
                            {kExactGelu, kTanhGelu}));
  RETURN_IF_ERROR(CheckTurned(model));
  return CheckRope(model);
}

absl::Status Resolve(ModelSpec& model) {
  if (!model.has_layer_norm_epsilon()) model.set_layer_norm_epsilon(1e-5);
  if (!model.has_tie_word_embeddings()) model.set_tie_word_embeddings(false);
  if (!model.has_attention_bias()) model.set_attention_bias(true);
  if (!model.has_hidden_act()) model.set_hidden_act(kExactGelu);
  if (!model.has_use_parallel_residual()) model.set_use_parallel_residual(true);
  if (!model.has_partial_rotary_factor()) model.set_partial_rotary_factor(0.25);
  SetRopeDefaults(model);
  return Check(model);
}

}  // namespace

Architecture GptNeox() {
  return {.name = "gpt_neox",
          .fields = {"layer_norm_epsilon", "attention_bias", "rope_theta",
                     "rope_scaling", "partial_rotary_factor",
                     "use_parallel_residual", "hidden_act"},
          .resolve = Resolve,
          .check = Check,
          .units = Units};
}

}  // namespace troupe
