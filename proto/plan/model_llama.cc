#include "proto/plan/model_llama.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/choices.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/model_fields.h"
#include "proto/plan/precision.h"
#include "proto/plan/rope_fields.h"
#include "proto/plan/unit_builder.h"

namespace troupe {
namespace {

constexpr double kF32Bytes = 4;

// The sizes, under the letters of the header.
struct Sizes {
  double rows() const { return static_cast<double>(r); }
  double element_bytes() const {
    return static_cast<double>(BytesOfElement(dtype));
  }

  int64_t b = 0;  // sequences
  int64_t t = 0;  // sequence_length
  int64_t r = 0;  // rows, b t
  int64_t l = 0;  // num_hidden_layers
  int64_t c = 0;  // hidden_size
  int64_t h = 0;  // num_attention_heads
  int64_t a = 0;  // width of the query heads
  int64_t k = 0;  // width of the key heads, and of the value heads
  int64_t f = 0;  // intermediate_size
  int64_t v = 0;  // vocab_size
  double init_std = 0;
  bool tied = false;
  bool attention_bias = false;
  bool mlp_bias = false;
  ElementType dtype = F32;
};

Sizes SizesOf(const ModelSpec& model, const MicroBatchShape& shape) {
  const int64_t head_dim = model.head_dim();
  return {.b = shape.sequences,
          .t = shape.sequence_length,
          .r = shape.sequences * shape.sequence_length,
          .l = model.num_hidden_layers(),
          .c = model.hidden_size(),
          .h = model.num_attention_heads(),
          .a = model.num_attention_heads() * head_dim,
          .k = model.num_key_value_heads() * head_dim,
          .f = model.intermediate_size(),
          .v = model.vocab_size(),
          .init_std = model.initializer_range(),
          .tied = model.tie_word_embeddings(),
          .attention_bias = model.attention_bias(),
          .mlp_bias = model.mlp_bias(),
          .dtype = shape.dtype};
}

Unit EmbeddingUnit(const Sizes& s) {
  UnitBuilder builder(Unit::EMBEDDING, 0, s.dtype);
  builder.Add("model.embed_tokens.weight", {s.v, s.c}, Parameter::NORMAL,
              s.init_std);
  Unit& unit = builder.unit();
  unit.set_activation_bytes(BufferBytes({s.r * s.c}, s.dtype));
  // Rows of the table in and out; backward reads the gradient and adds it to
  // rows of the table's, which is f32.
  const double rc = s.rows() * s.c;
  unit.mutable_forward()->set_memory_bytes(2.0 * rc * s.element_bytes());
  unit.mutable_backward_weight()->set_memory_bytes(
      rc * (s.element_bytes() + 2.0 * kF32Bytes));
  return std::move(unit);
}

void SetBlockWork(const Sizes& s, Unit& unit) {
  const double c = s.c;
  const double f = s.f;
  const double a = s.a;
  const double qk = s.a + s.k;
  const double qkv = s.a + 2.0 * s.k;
  const double products = 2.0 * s.rows() * (c * qkv + a * c + 3.0 * c * f);
  const double row_bytes = s.rows() * s.element_bytes();
  // Query t sees t + 1 keys; two products forward, five backward.
  const double attention = 2.0 * s.b * (s.t * (s.t + 1.0) / 2.0) * a;
  Work& forward = *unit.mutable_forward();
  forward.set_matmul_flops(products);
  forward.set_attention_flops(2.0 * attention);
  // norm 1: 2, norm 2 with the residual: 4, the residual at the end: 3; the
  // rotation reads and writes q and k; SwiGLU reads two and writes one.
  forward.set_memory_bytes(row_bytes * (9.0 * c + 2.0 * qk + 3.0 * f));
  forward.set_elementwise_ops(s.rows() * f);
  Work& input = *unit.mutable_backward_input();
  input.set_matmul_flops(products);
  input.set_attention_flops(5.0 * attention);
  input.set_memory_bytes(row_bytes * (8.0 * c + 2.0 * qk + 5.0 * f));
  input.set_elementwise_ops(s.rows() * f);
  Work& weight = *unit.mutable_backward_weight();
  weight.set_matmul_flops(products);
  // The norms read 2 C each, biases what they were added to.
  weight.set_memory_bytes(row_bytes *
                          (4.0 * c + (s.attention_bias ? qkv + c : 0.0) +
                           (s.mlp_bias ? 2.0 * f + c : 0.0)));
}

void AddNorm(UnitBuilder& builder, const std::string& name, const Sizes& s) {
  builder.Add(name + ".weight", {s.c}, Parameter::ONES);
}

// Projections of one input, [out, in] each, side by side: their weights, then
// their biases.
struct Projections {
  std::string prefix;
  std::vector<std::pair<std::string, int64_t>> outputs;  // name, width
  int64_t in = 0;
  bool bias = false;
};
void AddProjections(UnitBuilder& builder, const Projections& projections,
                    const Sizes& s) {
  for (const auto& [name, out] : projections.outputs) {
    builder.Add(projections.prefix + name + ".weight", {out, projections.in},
                Parameter::NORMAL, s.init_std);
  }
  if (!projections.bias) return;
  for (const auto& [name, out] : projections.outputs) {
    builder.Add(projections.prefix + name + ".bias", {out}, Parameter::ZEROS);
  }
}

Unit BlockUnit(const Sizes& s, int64_t layer) {
  UnitBuilder builder(Unit::BLOCK, 1 + layer, s.dtype);
  const std::string prefix = absl::StrCat("model.layers.", layer, ".");
  const std::string attention = prefix + "self_attn.";
  const std::string mlp = prefix + "mlp.";
  AddNorm(builder, prefix + "input_layernorm", s);
  AddProjections(
      builder,
      {.prefix = attention,
       .outputs = {{"q_proj", s.a}, {"k_proj", s.k}, {"v_proj", s.k}},
       .in = s.c,
       .bias = s.attention_bias},
      s);
  AddProjections(builder,
                 {.prefix = attention,
                  .outputs = {{"o_proj", s.c}},
                  .in = s.a,
                  .bias = s.attention_bias},
                 s);
  AddNorm(builder, prefix + "post_attention_layernorm", s);
  AddProjections(builder,
                 {.prefix = mlp,
                  .outputs = {{"gate_proj", s.f}, {"up_proj", s.f}},
                  .in = s.c,
                  .bias = s.mlp_bias},
                 s);
  AddProjections(builder,
                 {.prefix = mlp,
                  .outputs = {{"down_proj", s.c}},
                  .in = s.f,
                  .bias = s.mlp_bias},
                 s);
  Unit& unit = builder.unit();
  unit.set_layer(static_cast<int32_t>(layer));
  const int64_t rc = s.r * s.c;
  const int64_t rf = s.r * s.f;
  const int64_t r_qkv = s.r * (s.a + 2 * s.k);
  unit.set_activation_bytes(BufferBytes({rc}, s.dtype));
  unit.set_stash_bytes(
      BufferBytes({s.r, s.r, s.b * s.h * s.t}, F32) +
      BufferBytes({rc, r_qkv, s.r * s.a, rc, rc, 2 * rf, rf}, s.dtype));
  unit.set_weight_stash_bytes(
      BufferBytes({rc, r_qkv, rc, rc, 2 * rf}, s.dtype));
  unit.set_workspace_bytes(BufferBytes({s.r * std::max(s.a, s.f)}, s.dtype));
  SetBlockWork(s, unit);
  return std::move(unit);
}

Unit HeadUnit(const Sizes& s) {
  UnitBuilder builder(Unit::HEAD, 1 + s.l, s.dtype);
  AddNorm(builder, "model.norm", s);
  CompleteHead({.rows = s.r,
                .width = s.c,
                .vocab = s.v,
                .dtype = s.dtype,
                .norm_statistics = 1,
                .tied_to = s.tied ? "model.embed_tokens.weight" : "",
                .init_std = s.init_std},
               builder);
  return std::move(builder.unit());
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

absl::Status ResolveLlama(ModelSpec& model) {
  if (!model.has_num_key_value_heads()) {
    model.set_num_key_value_heads(model.num_attention_heads());
  }
  if (!model.has_head_dim()) {
    RETURN_IF_ERROR(CheckHeadsDivideWidth(model));
    model.set_head_dim(model.hidden_size() / model.num_attention_heads());
  }
  if (!model.has_rms_norm_eps()) model.set_rms_norm_eps(1e-6);
  if (!model.has_tie_word_embeddings()) model.set_tie_word_embeddings(false);
  if (!model.has_attention_bias()) model.set_attention_bias(false);
  if (!model.has_mlp_bias()) model.set_mlp_bias(false);
  SetRopeDefaults(model);
  return CheckLlama(model);
}

absl::Status CheckLlama(const ModelSpec& model) {
  RETURN_IF_ERROR(CheckHeads(model));
  RETURN_IF_ERROR(CheckNumber("model.rms_norm_eps", model.rms_norm_eps(),
                              {.min = 0, .max = 1, .min_open = true}));
  return CheckRope(model);
}

std::vector<Unit> LlamaUnits(const ModelSpec& model,
                             const MicroBatchShape& shape) {
  const Sizes sizes = SizesOf(model, shape);
  std::vector<Unit> units;
  units.push_back(EmbeddingUnit(sizes));
  for (int64_t layer = 0; layer < sizes.l; ++layer) {
    units.push_back(BlockUnit(sizes, layer));
  }
  units.push_back(HeadUnit(sizes));
  return units;
}

int64_t LlamaLookupParameters(const ModelSpec& model) {
  if (model.tie_word_embeddings()) return 0;
  return int64_t{model.vocab_size()} * model.hidden_size();
}

int64_t LlamaAttentionWidth(const ModelSpec& model) {
  return int64_t{model.num_attention_heads()} * model.head_dim();
}

}  // namespace troupe
