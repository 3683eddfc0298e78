#include "proto/plan/model_gpt2.h"

#include <cmath>
#include <initializer_list>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/choices.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

constexpr int64_t kF32Bytes = 4;
// Random sites of one unit; a unit has far fewer parameters. Sites are below
// 2^24, which bounds the units.
constexpr int64_t kSitesPerUnit = 64;
constexpr int64_t kLayersMax = (1 << 24) / kSitesPerUnit - 2;

int64_t Aligned(int64_t elements) {
  return (elements + kFlatAlignment - 1) / kFlatAlignment * kFlatAlignment;
}

// Bytes of f32 tensors laid one after another, each on a cache line.
int64_t BytesOf(std::initializer_list<int64_t> elements) {
  int64_t sum = 0;
  for (const int64_t count : elements) sum += Aligned(count);
  return sum * kF32Bytes;
}

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
};

absl::Status CheckPositive(const char* field, int64_t value) {
  if (value > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": must be at least 1, but is ", value));
}

absl::Status CheckFields(const ModelSpec& model, const MicroBatchShape& shape) {
  const std::pair<const char*, int64_t> positive[] = {
      {"model.num_hidden_layers", model.num_hidden_layers()},
      {"model.hidden_size", model.hidden_size()},
      {"model.num_attention_heads", model.num_attention_heads()},
      {"model.vocab_size", model.vocab_size()},
      {"model.max_position_embeddings", model.max_position_embeddings()},
      {"model.intermediate_size", model.intermediate_size()},
      {"training.micro_batch_size", shape.sequences},
      {"training.sequence_length", shape.sequence_length},
  };
  for (const auto& [field, value] : positive) {
    RETURN_IF_ERROR(CheckPositive(field, value));
  }
  if (model.num_hidden_layers() > kLayersMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("model.num_hidden_layers: ", model.num_hidden_layers(),
                     " is more than the ", kLayersMax, " that there can be"));
  }
  if (model.hidden_size() % model.num_attention_heads() != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model.num_attention_heads: ", model.num_attention_heads(),
        " does not divide model.hidden_size ", model.hidden_size(), "; use ",
        DivisorsText(model.hidden_size(), model.num_attention_heads())));
  }
  if (shape.sequence_length > model.max_position_embeddings()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "training.sequence_length: ", shape.sequence_length,
        " is more than model.max_position_embeddings ",
        model.max_position_embeddings(), "; shorten it to that or less"));
  }
  if (!(model.layer_norm_epsilon() > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("model.layer_norm_epsilon: must be above 0, but is ",
                     model.layer_norm_epsilon()));
  }
  if (!(model.initializer_range() >= 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("model.initializer_range: must not be below 0, but is ",
                     model.initializer_range()));
  }
  return absl::OkStatus();
}

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
          .tied = model.tie_word_embeddings()};
}

// Appends parameters to one unit, in the order of their offsets.
class UnitBuilder {
 public:
  UnitBuilder(Unit::Kind kind, int64_t index) : index_(index) {
    unit_.set_kind(kind);
  }

  void Add(const std::string& name, std::initializer_list<int64_t> shape,
           Parameter::Init init, double init_std = 0) {
    Parameter& parameter = *unit_.add_parameters();
    parameter.set_name(name);
    int64_t elements = 1;
    for (const int64_t dim : shape) {
      parameter.add_shape(dim);
      elements *= dim;
    }
    parameter.set_dtype(F32);
    parameter.set_offset(unit_.flat_elements());
    parameter.set_init(init);
    parameter.set_init_std(init_std);
    parameter.set_weight_decay(shape.size() >= 2);
    parameter.set_random_site(static_cast<int32_t>(index_ * kSitesPerUnit) +
                              unit_.parameters_size() - 1);
    unit_.set_flat_elements(unit_.flat_elements() + Aligned(elements));
  }

  void AddNorm(const std::string& prefix, int64_t width) {
    Add(prefix + ".weight", {width}, Parameter::ONES);
    Add(prefix + ".bias", {width}, Parameter::ZEROS);
  }

  // Conv1D: the weight is [in, out].
  void AddLinear(const std::string& prefix, int64_t in, int64_t out,
                 double init_std) {
    Add(prefix + ".weight", {in, out}, Parameter::NORMAL, init_std);
    Add(prefix + ".bias", {out}, Parameter::ZEROS);
  }

  Unit& unit() { return unit_; }

 private:
  const int64_t index_;
  Unit unit_;
};

Unit EmbeddingUnit(const Sizes& s) {
  UnitBuilder builder(Unit::EMBEDDING, 0);
  builder.Add("transformer.wte.weight", {s.v, s.c}, Parameter::NORMAL,
              s.init_std);
  builder.Add("transformer.wpe.weight", {s.p, s.c}, Parameter::NORMAL,
              s.init_std);
  Unit& unit = builder.unit();
  unit.set_activation_bytes(BytesOf({s.r * s.c}));
  unit.set_workspace_bytes(BytesOf({s.r * s.c}));
  // Rows of both tables in, the sum out; backward reads and adds to them.
  unit.mutable_forward()->set_memory_bytes(3.0 * s.rows() * s.c * kF32Bytes);
  unit.mutable_backward_weight()->set_memory_bytes(5.0 * s.rows() * s.c *
                                                   kF32Bytes);
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
  forward.set_memory_bytes(s.rows() * (9.0 * c + f) * kF32Bytes);
  forward.set_elementwise_ops(s.rows() * f);
  Work& input = *unit.mutable_backward_input();
  input.set_matmul_flops(products);
  input.set_attention_flops(5.0 * attention);
  input.set_memory_bytes(s.rows() * (8.0 * c + 3.0 * f) * kF32Bytes);
  input.set_elementwise_ops(s.rows() * f);
  Work& weight = *unit.mutable_backward_weight();
  weight.set_matmul_flops(products);
  // Biases read 5 C + F, the norms 2 C each.
  weight.set_memory_bytes(s.rows() * (9.0 * c + f) * kF32Bytes);
}

Unit BlockUnit(const Sizes& s, int64_t layer) {
  UnitBuilder builder(Unit::BLOCK, 1 + layer);
  const std::string prefix = absl::StrCat("transformer.h.", layer, ".");
  // Layers that add to the residual stream start smaller, so that its variance
  // does not grow with the depth (GPT-2, section 2.3).
  const double residual_std = s.init_std / std::sqrt(2.0 * s.l);
  builder.AddNorm(prefix + "ln_1", s.c);
  builder.AddLinear(prefix + "attn.c_attn", s.c, 3 * s.c, s.init_std);
  builder.AddLinear(prefix + "attn.c_proj", s.c, s.c, residual_std);
  builder.AddNorm(prefix + "ln_2", s.c);
  builder.AddLinear(prefix + "mlp.c_fc", s.c, s.f, s.init_std);
  builder.AddLinear(prefix + "mlp.c_proj", s.f, s.c, residual_std);
  Unit& unit = builder.unit();
  unit.set_layer(static_cast<int32_t>(layer));
  const int64_t rc = s.r * s.c;
  const int64_t rf = s.r * s.f;
  unit.set_activation_bytes(BytesOf({rc}));
  unit.set_stash_bytes(BytesOf(
      {s.r, s.r, s.r, s.r, s.b * s.h * s.t, rc, 3 * rc, rc, rc, rc, rf, rf}));
  unit.set_weight_stash_bytes(BytesOf({rc, 3 * rc, rc, rc, rf}));
  unit.set_workspace_bytes(BytesOf({rc}));
  SetBlockWork(s, unit);
  return std::move(unit);
}

Unit HeadUnit(const Sizes& s) {
  UnitBuilder builder(Unit::HEAD, 1 + s.l);
  builder.AddNorm("transformer.ln_f", s.c);
  Unit& unit = builder.unit();
  if (s.tied) {
    Unit::Tied& tied = *unit.add_tied();
    tied.set_unit(0);
    tied.set_parameter("transformer.wte.weight");
  } else {
    builder.Add("lm_head.weight", {s.v, s.c}, Parameter::NORMAL, s.init_std);
  }
  const int64_t rc = s.r * s.c;
  unit.set_stash_bytes(BytesOf({s.r, s.r, rc, s.r * Aligned(s.v)}));
  unit.set_weight_stash_bytes(BytesOf({rc}));
  const double products = 2.0 * s.rows() * s.c * s.v;
  Work& forward = *unit.mutable_forward();
  forward.set_matmul_flops(products);
  // The loss reads the logits twice and writes their gradient.
  forward.set_memory_bytes(s.rows() * (2.0 * s.c + 3.0 * s.v) * kF32Bytes);
  forward.set_elementwise_ops(2.0 * s.rows() * s.v);
  Work& input = *unit.mutable_backward_input();
  input.set_matmul_flops(products);
  input.set_memory_bytes(3.0 * rc * kF32Bytes);
  Work& weight = *unit.mutable_backward_weight();
  weight.set_matmul_flops(products);
  weight.set_memory_bytes(2.0 * rc * kF32Bytes);
  return std::move(unit);
}

}  // namespace

absl::StatusOr<std::vector<Unit>> Gpt2Units(const ModelSpec& model,
                                            const MicroBatchShape& shape) {
  RETURN_IF_ERROR(CheckFields(model, shape));
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

}  // namespace troupe
