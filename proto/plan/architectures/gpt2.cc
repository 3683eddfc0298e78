// GPT-2 (Radford et al., 2019): learned positions, LayerNorm in front of each
// layer, GELU, weights of blocks kept [in, out] as its Conv1D does.
//
//   r = x + dropout(attention(norm_1(x)));  y = r + dropout(mlp(norm_2(r)))
//
// With model.num_experts the MLP of some layers is a mixture of experts, whose
// products have no biases, as GShard (arXiv 2006.16668) and Switch (2101.03961)
// have it. Nobody else has files of such models.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/architectures/architecture.h"
#include "proto/plan/architectures/experts_section.h"
#include "proto/plan/fields.h"
#include "proto/plan/model_fields.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

Dim Hidden(const ModelSpec& model) {
  return DimOf({{Dim::HIDDEN, model.hidden_size()}});
}

UnitBuilder Embedding(const ModelSpec& model, const MicroBatchShape& shape) {
  UnitBuilder unit(Unit::EMBEDDING, {.index = 0, .shape = shape});
  unit.Output(
      unit.Dropout(unit.Embed({.tokens = "transformer.wte.weight",
                               .positions = "transformer.wpe.weight",
                               .vocabulary = model.vocab_size(),
                               .positions_max = model.max_position_embeddings(),
                               .hidden = Hidden(model),
                               .init_std = model.initializer_range()})));
  return unit;
}

// Queries, keys and values: a section of columns each, in one weight.
Dim Qkv(const ModelSpec& model) {
  const int64_t heads = model.num_attention_heads();
  const int64_t width = model.hidden_size() / heads;
  return DimOf({{Dim::HEADS, heads, width},
                {Dim::KEY_VALUE_HEADS, heads, width},
                {Dim::KEY_VALUE_HEADS, heads, width}});
}

bool HasExperts(const ModelSpec& model, int64_t layer) {
  return model.num_experts() > 0 &&
         (layer + 1) % model.decoder_sparse_step() == 0;
}

ExpertsSection ExpertsOf(const ModelSpec& model, const std::string& at,
                         double residual_std) {
  return {.router = at + "mlp.router",
          .up = at + "mlp.experts.*.c_fc",
          .down = at + "mlp.experts.*.c_proj",
          .experts = model.num_experts(),
          .choices = model.num_experts_per_tok(),
          .intermediate = model.intermediate_size(),
          .renormalise = true,
          .init_std = model.initializer_range(),
          .down_init_std = residual_std};
}

UnitBuilder Block(const ModelSpec& model, const MicroBatchShape& shape,
                  int64_t layer) {
  UnitBuilder unit(Unit::BLOCK, {.index = 1 + layer,
                                 .layer = layer,
                                 .first_mask = 1,  // behind the embedding's
                                 .shape = shape});
  const std::string at = absl::StrCat("transformer.h.", layer, ".");
  const double epsilon = model.layer_norm_epsilon();
  const double init_std = model.initializer_range();
  // Layers that add to the residual stream start smaller, so that its variance
  // does not grow with the depth (GPT-2, section 2.3).
  const double residual_std =
      init_std / std::sqrt(2.0 * model.num_hidden_layers());
  const auto linear = [&](int x, const char* name, const Dim& out, double std) {
    return unit.Linear({.x = x,
                        .projections = {{at + name, out}},
                        .output = name,
                        .in_out = true,
                        .bias = true,
                        .init_std = std});
  };
  const Dim intermediate =
      DimOf({{Dim::INTERMEDIATE, model.intermediate_size()}});

  const int x = unit.Input(Hidden(model));
  const int norm_1 = unit.Norm({.x = x,
                                .name = at + "ln_1",
                                .output = "ln_1",
                                .epsilon = epsilon})
                         .y;
  const int qkv = linear(norm_1, "attn.c_attn", Qkv(model), init_std);
  const int attention =
      linear(unit.Attention(qkv), "attn.c_proj", Hidden(model), residual_std);
  const auto [norm_2, residual] = unit.Norm({.x = unit.Dropout(attention),
                                             .residual = x,
                                             .name = at + "ln_2",
                                             .output = "ln_2",
                                             .epsilon = epsilon});
  const int mlp =
      HasExperts(model, layer)
          ? AppendExperts(ExpertsOf(model, at, residual_std), model.experts(),
                          shape.sequence_length, norm_2, unit)
          : linear(
                unit.Gelu(linear(norm_2, "mlp.c_fc", intermediate, init_std)),
                "mlp.c_proj", Hidden(model), residual_std);
  unit.Output(unit.Add({.x = unit.Dropout(mlp), .residual = residual}));
  return unit;
}

UnitBuilder Head(const ModelSpec& model, const MicroBatchShape& shape) {
  const bool tied = model.tie_word_embeddings();
  UnitBuilder unit(Unit::HEAD,
                   {.index = 1 + model.num_hidden_layers(), .shape = shape});
  const int norm = unit.Norm({.x = unit.Input(Hidden(model)),
                              .name = "transformer.ln_f",
                              .output = "ln_f",
                              .epsilon = model.layer_norm_epsilon()})
                       .y;
  unit.Loss({.x = norm,
             .weight = "lm_head.weight",
             .tied_to = tied ? "transformer.wte.weight" : "",
             .vocabulary = model.vocab_size(),
             .init_std = model.initializer_range()});
  return unit;
}

absl::StatusOr<UnitList> Units(const ModelSpec& model,
                               const MicroBatchShape& shape) {
  UnitList units;
  units.Append(Embedding(model, shape));
  for (int64_t layer = 0; layer < model.num_hidden_layers(); ++layer) {
    units.Append(Block(model, shape, layer));
  }
  units.Append(Head(model, shape));
  return units;
}

// A field of experts in a model without.
absl::Status Unused(bool set, const char* field) {
  if (!set) return absl::OkStatus();
  return FieldError(absl::StrCat("model.", field),
                    "is of a gpt2 with model.num_experts; leave it out, or say "
                    "how many experts there are");
}

absl::Status CheckMixture(const ModelSpec& model) {
  if (model.has_num_experts()) {
    RETURN_IF_ERROR(CheckInteger("model.decoder_sparse_step",
                                 model.decoder_sparse_step(),
                                 {.min = 1, .max = model.num_hidden_layers()}));
    return CheckExperts(model);
  }
  RETURN_IF_ERROR(
      Unused(model.has_num_experts_per_tok(), "num_experts_per_tok"));
  RETURN_IF_ERROR(
      Unused(model.has_decoder_sparse_step(), "decoder_sparse_step"));
  return Unused(model.has_experts(), "experts");
}

absl::Status Check(const ModelSpec& model) {
  RETURN_IF_ERROR(CheckHeadsDivideWidth(model));
  RETURN_IF_ERROR(CheckNumber("model.layer_norm_epsilon",
                              model.layer_norm_epsilon(),
                              {.min = 0, .max = 1, .min_open = true}));
  return CheckMixture(model);
}

void SetMixtureDefaults(ModelSpec& model) {
  if (!model.has_num_experts()) return;
  SetExpertsDefaults(model);
  if (!model.has_num_experts_per_tok()) {
    const bool one = model.experts().routing() == "switch";
    model.set_num_experts_per_tok(one ? 1 : std::min(2, model.num_experts()));
  }
  if (!model.has_decoder_sparse_step()) model.set_decoder_sparse_step(1);
}

absl::Status Resolve(ModelSpec& model) {
  if (!model.has_layer_norm_epsilon()) model.set_layer_norm_epsilon(1e-5);
  if (!model.has_tie_word_embeddings()) model.set_tie_word_embeddings(true);
  SetMixtureDefaults(model);
  return Check(model);
}

}  // namespace

Architecture Gpt2() {
  return {.name = "gpt2",
          .fields = {"layer_norm_epsilon", "num_experts", "num_experts_per_tok",
                     "decoder_sparse_step", "experts"},
          .resolve = Resolve,
          .check = Check,
          .units = Units};
}

}  // namespace troupe
