#include "proto/plan/model_gpt2.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/model_fields.h"
#include "proto/plan/precision.h"
#include "proto/plan/unit_builder.h"

namespace troupe {
namespace {

constexpr double kF32Bytes = 4;

// The sizes, under the letters that papers give them.
struct Sizes {
  double rows() const { return static_cast<double>(r); }

  int64_t b = 0;  // sequences
  int64_t t = 0;  // sequence_length
  int64_t r = 0;  // rows, b t
  int64_t l = 0;  // num_hidden_layers
  int64_t c = 0;  // hidden_size
  int64_t h = 0;  // num_attention_heads
  int64_t f = 0;  // intermediate_size
  int64_t v = 0;  // vocab_size
  int64_t p = 0;  // max_position_embeddings
  double init_std = 0;
  bool tied = true;
  ElementType dtype = F32;

  double element_bytes() const {
    return static_cast<double>(BytesOfElement(dtype));
  }
};

Sizes SizesOf(const ModelSpec& model, const MicroBatchShape& shape) {
  return {.b = shape.sequences,
          .t = shape.sequence_length,
          .r = shape.sequences * shape.sequence_length,
          .l = model.num_hidden_layers(),
          .c = model.hidden_size(),
          .h = model.num_attention_heads(),
          .f = model.intermediate_size(),
          .v = model.vocab_size(),
          .p = model.max_position_embeddings(),
          .init_std = model.initializer_range(),
          .tied = model.tie_word_embeddings(),
          .dtype = shape.dtype};
}

void AddNorm(UnitBuilder& builder, const std::string& prefix, int64_t width) {
  builder.Add(prefix + ".weight", {width}, Parameter::ONES);
  builder.Add(prefix + ".bias", {width}, Parameter::ZEROS);
}

struct LinearShape {
  int64_t in = 0;
  int64_t out = 0;
  double init_std = 0;
};

// Conv1D: the weight is [in, out].
void AddLinear(UnitBuilder& builder, const std::string& prefix,
               const LinearShape& shape) {
  builder.Add(prefix + ".weight", {shape.in, shape.out}, Parameter::NORMAL,
              shape.init_std);
  builder.Add(prefix + ".bias", {shape.out}, Parameter::ZEROS);
}

Unit EmbeddingUnit(const Sizes& s) {
  UnitBuilder builder(Unit::EMBEDDING, 0, s.dtype);
  builder.Add("transformer.wte.weight", {s.v, s.c}, Parameter::NORMAL,
              s.init_std);
  builder.Add("transformer.wpe.weight", {s.p, s.c}, Parameter::NORMAL,
              s.init_std);
  Unit& unit = builder.unit();
  unit.set_activation_bytes(BufferBytes({s.r * s.c}, s.dtype));
  unit.set_workspace_bytes(BufferBytes({s.r * s.c}, s.dtype));
  // Rows of both tables in, the sum out; backward reads it and adds to rows of
  // both tables' gradients, which are f32.
  const double rc = s.rows() * s.c;
  unit.mutable_forward()->set_memory_bytes(3.0 * rc * s.element_bytes());
  unit.mutable_backward_weight()->set_memory_bytes(
      rc * (s.element_bytes() + 4.0 * kF32Bytes));
  return std::move(unit);
}

void SetBlockWork(const Sizes& s, Unit& unit) {
  const double c = s.c;
  const double f = s.f;
  const double products = 2.0 * s.rows() * (4.0 * c * c + 2.0 * c * f);
  // Query t sees t + 1 keys; two products forward, five backward.
  const double attention =
      2.0 * s.b * (s.t * (s.t + 1.0) / 2.0) * c;  // one product
  Work& forward = *unit.mutable_forward();
  forward.set_matmul_flops(products);
  forward.set_attention_flops(2.0 * attention);
  // norm 1: 2, norm 2 with the residual: 4, the residual at the end: 3.
  forward.set_memory_bytes(s.rows() * (9.0 * c + f) * s.element_bytes());
  forward.set_elementwise_ops(s.rows() * f);
  Work& input = *unit.mutable_backward_input();
  input.set_matmul_flops(products);
  input.set_attention_flops(5.0 * attention);
  input.set_memory_bytes(s.rows() * (8.0 * c + 3.0 * f) * s.element_bytes());
  input.set_elementwise_ops(s.rows() * f);
  Work& weight = *unit.mutable_backward_weight();
  weight.set_matmul_flops(products);
  // Biases read 5 C + F, the norms 2 C each.
  weight.set_memory_bytes(s.rows() * (9.0 * c + f) * s.element_bytes());
}

Unit BlockUnit(const Sizes& s, int64_t layer) {
  UnitBuilder builder(Unit::BLOCK, 1 + layer, s.dtype);
  const std::string prefix = absl::StrCat("transformer.h.", layer, ".");
  // Layers that add to the residual stream start smaller, so that its variance
  // does not grow with the depth (GPT-2, section 2.3).
  const double residual_std = s.init_std / std::sqrt(2.0 * s.l);
  AddNorm(builder, prefix + "ln_1", s.c);
  AddLinear(builder, prefix + "attn.c_attn", {s.c, 3 * s.c, s.init_std});
  AddLinear(builder, prefix + "attn.c_proj", {s.c, s.c, residual_std});
  AddNorm(builder, prefix + "ln_2", s.c);
  AddLinear(builder, prefix + "mlp.c_fc", {s.c, s.f, s.init_std});
  AddLinear(builder, prefix + "mlp.c_proj", {s.f, s.c, residual_std});
  Unit& unit = builder.unit();
  unit.set_layer(static_cast<int32_t>(layer));
  const int64_t rc = s.r * s.c;
  const int64_t rf = s.r * s.f;
  unit.set_activation_bytes(BufferBytes({rc}, s.dtype));
  unit.set_stash_bytes(BufferBytes({s.r, s.r, s.r, s.r, s.b * s.h * s.t}, F32) +
                       BufferBytes({rc, 3 * rc, rc, rc, rc, rf, rf}, s.dtype));
  unit.set_weight_stash_bytes(BufferBytes({rc, 3 * rc, rc, rc, rf}, s.dtype));
  unit.set_workspace_bytes(BufferBytes({rc}, s.dtype));
  SetBlockWork(s, unit);
  return std::move(unit);
}

Unit HeadUnit(const Sizes& s) {
  UnitBuilder builder(Unit::HEAD, 1 + s.l, s.dtype);
  AddNorm(builder, "transformer.ln_f", s.c);
  CompleteHead({.rows = s.r,
                .width = s.c,
                .vocab = s.v,
                .dtype = s.dtype,
                .norm_statistics = 2,
                .tied_to = s.tied ? "transformer.wte.weight" : "",
                .init_std = s.init_std},
               builder);
  return std::move(builder.unit());
}

}  // namespace

absl::Status ResolveGpt2(ModelSpec& model) {
  if (!model.has_layer_norm_epsilon()) model.set_layer_norm_epsilon(1e-5);
  if (!model.has_tie_word_embeddings()) model.set_tie_word_embeddings(true);
  return CheckGpt2(model);
}

absl::Status CheckGpt2(const ModelSpec& model) {
  RETURN_IF_ERROR(CheckHeadsDivideWidth(model));
  return CheckNumber("model.layer_norm_epsilon", model.layer_norm_epsilon(),
                     {.min = 0, .max = 1, .min_open = true});
}

std::vector<Unit> Gpt2Units(const ModelSpec& model,
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

int64_t Gpt2LookupParameters(const ModelSpec& model) {
  const int64_t rows = int64_t{model.max_position_embeddings()} +
                       (model.tie_word_embeddings() ? 0 : model.vocab_size());
  return rows * model.hidden_size();
}

int64_t Gpt2AttentionWidth(const ModelSpec& model) {
  return model.hidden_size();
}

}  // namespace troupe
