// The table of kinds: each alone, with and without what is optional.
#include <cmath>
#include <set>
#include <utility>

#include "gtest/gtest.h"
#include "proto/plan/tensor_spec.h"
#include "tests/worker/layers/kinds_of_adapters.h"
#include "tests/worker/layers/kinds_of_experts.h"
#include "tests/worker/layers/one_op.h"
#include "tests/worker/layers/small_dims.h"

namespace troupe {
namespace {

using Operand = OneOpSpec::Operand;

constexpr float kMasked = 0.3f;

void AddMask(Op& op) {
  op.mutable_mask()->set_probability(kMasked);
  op.mutable_mask()->set_site(2);
}

OneOpSpec Embed(const char* name, bool positions) {
  OneOpSpec spec = {.name = name,
                    .op = OfKind(Op::EMBED),
                    .inputs = {{"tokens", Rows(), I32}},
                    .outputs = {{"y", Columns(kHidden)}},
                    .parameters = {{3, kHidden}}};
  if (positions) spec.parameters.push_back({kLength + 1, kHidden});
  return spec;
}

OneOpSpec Dropout() {
  OneOpSpec spec = {.name = "Dropout",
                    .op = OfKind(Op::DROPOUT),
                    .inputs = {{"x", Columns(kHidden)}},
                    .outputs = {{"y", Columns(kHidden)}}};
  AddMask(spec.op);
  return spec;
}

OneOpSpec Norm(const char* name, bool root_mean_square, bool residual,
               bool read_elsewhere) {
  OneOpSpec spec = {.name = name,
                    .op = OfKind(Op::NORM),
                    .inputs = {{"x", Columns(kHidden)}},
                    .outputs = {{"y", Columns(kHidden)}},
                    .parameters = {{kHidden}},
                    .read_elsewhere = read_elsewhere};
  spec.op.mutable_norm()->set_root_mean_square(root_mean_square);
  spec.op.mutable_norm()->set_epsilon(1e-3);
  if (residual) {
    spec.inputs.push_back({"residual", Columns(kHidden)});
    spec.outputs.push_back({"sum", Columns(kHidden)});
  }
  if (!root_mean_square) {
    spec.outputs.push_back({"mean", Rows(), F32});
    spec.parameters.push_back({kHidden});
  }
  spec.outputs.push_back({"rstd", Rows(), F32});
  return spec;
}

struct LinearSpec {
  const char* name;
  int64_t in = kHidden;
  std::vector<int64_t> out = {};
  bool in_out = false;
  bool bias = false;
  int64_t row_alignment = 0;
};

OneOpSpec Linear(const LinearSpec& linear) {
  OneOpSpec spec = {.name = linear.name,
                    .op = OfKind(Op::LINEAR),
                    .inputs = {{"x", Columns(linear.in)}}};
  spec.op.mutable_linear()->set_in_out(linear.in_out);
  spec.op.mutable_linear()->set_bias(linear.bias);
  int64_t columns = 0;
  for (const int64_t out : linear.out) {
    spec.parameters.push_back(linear.in_out
                                  ? std::vector<int64_t>{linear.in, out}
                                  : std::vector<int64_t>{out, linear.in});
    columns += out;
  }
  for (const int64_t out : linear.out) {
    if (linear.bias) spec.parameters.push_back({out});
  }
  spec.outputs = {
      {"y", Columns(columns), ELEMENT_TYPE_UNSPECIFIED, linear.row_alignment}};
  return spec;
}

Dim Qkv(int64_t heads, int64_t kv_heads, int64_t width) {
  return DimOf({{Dim::HEADS, heads, width},
                {Dim::KEY_VALUE_HEADS, kv_heads, width},
                {Dim::KEY_VALUE_HEADS, kv_heads, width}});
}

OneOpSpec Rope(const char* name, double factor, int64_t head_dim = 4) {
  OneOpSpec spec = {.name = name,
                    .op = OfKind(Op::ROPE),
                    .inputs = {{"x", With(Qkv(2, 1, head_dim))}},
                    .outputs = {{"y", With(Qkv(2, 1, head_dim))}}};
  for (const double frequency : {1.0, 0.1}) {
    spec.op.mutable_rope()->mutable_training()->add_inverse_frequencies(
        frequency);
  }
  spec.op.mutable_rope()->mutable_training()->set_factor(factor);
  return spec;
}

OneOpSpec Attention(const char* name, int64_t heads, int64_t kv_heads,
                    bool masked) {
  constexpr int64_t kWidth = 3;
  OneOpSpec spec = {
      .name = name,
      .op = OfKind(Op::ATTENTION),
      .inputs = {{"qkv", With(Qkv(heads, kv_heads, kWidth))}},
      .outputs = {{"y", With(DimOf({{Dim::HEADS, heads, kWidth}}))},
                  {"logsumexp",
                   {DimOf({{Dim::BATCH, kBatch}}), DimOf({{Dim::HEADS, heads}}),
                    DimOf({{Dim::SEQUENCE, kLength}})},
                   F32}}};
  if (masked) AddMask(spec.op);
  return spec;
}

// Heads of values of another width, and scores of another scale.
OneOpSpec AttentionOfWidths() {
  constexpr int64_t kHeads = 4, kKvHeads = 2, kKeys = 6, kValues = 3;
  OneOpSpec spec = Attention("AttentionOfWidths", kHeads, kKvHeads, false);
  spec.inputs[0].dims =
      With(DimOf({{Dim::HEADS, kHeads, kKeys},
                  {Dim::KEY_VALUE_HEADS, kKvHeads, kKeys},
                  {Dim::KEY_VALUE_HEADS, kKvHeads, kValues}}));
  spec.outputs[0].dims = With(DimOf({{Dim::HEADS, kHeads, kValues}}));
  spec.op.mutable_softmax()->set_scale(0.7);
  return spec;
}

// Of parts that are whole heads.
OneOpSpec JoinHeads() {
  return {.name = "JoinHeads",
          .op = OfKind(Op::JOIN_HEADS),
          .inputs = {{"q", With(DimOf({{Dim::HEADS, 4, 3}}))},
                     {"k", With(DimOf({{Dim::KEY_VALUE_HEADS, 2, 3}}))},
                     {"v", With(DimOf({{Dim::KEY_VALUE_HEADS, 2, 3}}))}},
          .outputs = {{"y", With(Qkv(4, 2, 3))}}};
}

// Keys whose first columns are the same for all heads; values in the same rows.
OneOpSpec JoinHeadsOfLatents(const char* name, bool interleaved) {
  constexpr int64_t kHeads = 3, kOwn = 2, kShared = 4, kValues = 5;
  constexpr int64_t kKeys = kOwn + kShared;
  OneOpSpec spec = {
      .name = name,
      .op = OfKind(Op::JOIN_HEADS),
      .inputs = {{"q", With(DimOf({{Dim::HEADS, kHeads, kKeys}}))},
                 {"k", With(DimOf(
                           {{Dim::KEY_VALUE_HEADS, kHeads, kOwn + kValues}}))},
                 {"shared", With(DimOf({{Dim::HEAD_COLUMNS, kShared}}))}},
      .outputs = {
          {"y", With(DimOf({{Dim::HEADS, kHeads, kKeys},
                            {Dim::KEY_VALUE_HEADS, kHeads, kKeys},
                            {Dim::KEY_VALUE_HEADS, kHeads, kValues}}))}}};
  spec.op.mutable_join_heads()->set_interleaved(interleaved);
  return spec;
}

OneOpSpec HeadNorm(const char* name, int64_t kv_heads) {
  constexpr int64_t kHeads = 4;
  constexpr int64_t kWidth = 6;
  const Dim columns = Qkv(kHeads, kv_heads, kWidth);
  OneOpSpec spec = {
      .name = name,
      .op = OfKind(Op::HEAD_NORM),
      .inputs = {{"x", With(columns)}},
      .outputs = {{"y", With(columns)},
                  {"query_rstd", With(DimOf({{Dim::HEADS, kHeads}})), F32},
                  {"key_rstd", With(DimOf({{Dim::KEY_VALUE_HEADS, kv_heads}})),
                   F32}},
      .parameters = {{kWidth}, {kWidth}}};
  spec.op.mutable_head_norm()->set_epsilon(1e-3);
  return spec;
}

OneOpSpec Gelu(const char* name, bool exact) {
  OneOpSpec spec = {.name = name,
                    .op = OfKind(Op::GELU),
                    .inputs = {{"x", Columns(kHidden)}},
                    .outputs = {{"y", Columns(kHidden)}}};
  spec.op.mutable_gelu()->set_exact(exact);
  return spec;
}

OneOpSpec SwiGlu() {
  return {.name = "SwiGlu",
          .op = OfKind(Op::SWIGLU),
          .inputs = {{"gate_up", With(DimOf({{Dim::INTERMEDIATE, kHidden},
                                             {Dim::INTERMEDIATE, kHidden}}))}},
          .outputs = {{"y", With(DimOf({{Dim::INTERMEDIATE, kHidden}}))}}};
}

OneOpSpec Add() {
  return {.name = "Add",
          .op = OfKind(Op::ADD),
          .inputs = {{"x", Columns(kHidden)}, {"residual", Columns(kHidden)}},
          .outputs = {{"y", Columns(kHidden)}}};
}

// Blocks of columns of heads, some of which several blocks have.
OneOpSpec PackHeads(const char* name, Op::Kind kind) {
  constexpr int kBlocks = 4;
  OneOpSpec spec = {
      .name = name,
      .op = OfKind(kind),
      .inputs = {{"x", With(Qkv(8, 2, 3))}},
      .outputs = {{"y",
                   {DimOf({{Dim::BATCH, kBlocks * kBatch}}),
                    DimOf({{Dim::SEQUENCE, kLength}}), Qkv(2, 1, 3)}}}};
  spec.op.mutable_pack()->set_dim(2);
  spec.op.mutable_pack()->set_blocks(kBlocks);
  if (kind == Op::UNPACK) {
    std::swap(spec.inputs[0].dims, spec.outputs[0].dims);
  }
  return spec;
}

OneOpSpec PackRows(const char* name, Op::Kind kind, int64_t batch) {
  constexpr int kBlocks = 3;
  const auto rows = [](int64_t sequences, int64_t positions) {
    return std::vector<Dim>{DimOf({{Dim::BATCH, sequences}}),
                            DimOf({{Dim::SEQUENCE, positions}}),
                            DimOf({{Dim::HIDDEN, kHidden}})};
  };
  OneOpSpec spec = {.name = name,
                    .op = OfKind(kind),
                    .inputs = {{"x", rows(batch, kBlocks * kLength)}},
                    .outputs = {{"y", rows(kBlocks * batch, kLength)}}};
  spec.op.mutable_pack()->set_dim(1);
  spec.op.mutable_pack()->set_blocks(kBlocks);
  if (kind == Op::UNPACK) {
    std::swap(spec.inputs[0].dims, spec.outputs[0].dims);
  }
  return spec;
}

OneOpSpec Split() {
  return {.name = "Split",
          .op = OfKind(Op::SPLIT),
          .inputs = {{"x", With(Qkv(8, 2, 3))}},
          .outputs = {{"y", With(DimOf({{Dim::HEADS, 8, 3}}))},
                      {"rest", With(DimOf({{Dim::KEY_VALUE_HEADS, 2, 3},
                                           {Dim::KEY_VALUE_HEADS, 2, 3}}))}}};
}

OneOpSpec Concat() {
  return {.name = "Concat",
          .op = OfKind(Op::CONCAT),
          .inputs = {{"first", Columns(kHidden)}, {"rest", Columns(3)}},
          .outputs = {
              {"y", With(DimOf({{Dim::HIDDEN, kHidden}, {Dim::HIDDEN, 3}}))}}};
}

OneOpSpec Fork() {
  return {.name = "Fork",
          .op = OfKind(Op::FORK),
          .inputs = {{"x", Columns(kHidden)}},
          .outputs = {{"y", Columns(kHidden)}, {"other", Columns(kHidden)}}};
}

std::vector<Dim> ScoresOf(int64_t heads) {
  return {DimOf({{Dim::BATCH, kBatch}}), DimOf({{Dim::HEADS, heads}}),
          DimOf({{Dim::SEQUENCE, kLength}}), DimOf({{Dim::KEYS, kLength}})};
}

// Of the rank's own keys.
OneOpSpec Scores() {
  return {.name = "Scores",
          .op = OfKind(Op::SCORES),
          .inputs = {{"q", With(DimOf({{Dim::HEADS, 4, 3}}))},
                     {"k", With(DimOf({{Dim::KEY_VALUE_HEADS, 2, 3}}))}},
          .outputs = {{"y", ScoresOf(4)}}};
}

OneOpSpec Softmax(const char* name, bool masked) {
  OneOpSpec spec = {.name = name,
                    .op = OfKind(Op::SOFTMAX),
                    .inputs = {{"x", ScoresOf(2)}},
                    .outputs = {{"y", ScoresOf(2)}}};
  spec.op.mutable_softmax()->set_scale(0.6);
  if (!masked) return spec;
  AddMask(spec.op);
  spec.outputs.push_back({"dropped", ScoresOf(2)});
  return spec;
}

OneOpSpec WeightedValues() {
  return {.name = "WeightedValues",
          .op = OfKind(Op::WEIGHTED_VALUES),
          .inputs = {{"p", ScoresOf(4)},
                     {"v", With(DimOf({{Dim::KEY_VALUE_HEADS, 2, 3}}))}},
          .outputs = {{"y", With(DimOf({{Dim::HEADS, 4, 3}}))}}};
}

OneOpSpec CrossEntropy(const char* name, int64_t row_alignment) {
  return {.name = name,
          .op = OfKind(Op::CROSS_ENTROPY),
          .inputs = {{"logits", With(DimOf({{Dim::VOCABULARY, kHidden}})),
                      ELEMENT_TYPE_UNSPECIFIED, row_alignment},
                     {"targets", Rows(), I32}}};
}

// Of two weights below one another.
OneOpSpec Weight() {
  return {.name = "Weight",
          .op = OfKind(Op::WEIGHT),
          .outputs = {{"y",
                       {DimOf({{Dim::HEADS, 3}, {Dim::KEY_VALUE_HEADS, 2}}),
                        DimOf({{Dim::INNER, kHidden}})}}},
          .parameters = {{3, kHidden}, {2, kHidden}}};
}

OneOpSpec Product(const char* name, bool in_out, int biases) {
  constexpr int64_t kOut = 6;
  const Dim in = DimOf({{Dim::INNER, kHidden}});
  const Dim out = DimOf({{Dim::INTERMEDIATE, kOut}});
  OneOpSpec spec = {.name = name,
                    .op = OfKind(Op::PRODUCT),
                    .inputs = {{"x", Columns(kHidden)},
                               {"w", in_out ? std::vector<Dim>{in, out}
                                            : std::vector<Dim>{out, in}}},
                    .outputs = {{"y", With(out)}}};
  spec.op.mutable_linear()->set_in_out(in_out);
  spec.op.mutable_linear()->set_bias(biases > 0);
  for (int i = 0; i < biases; ++i) spec.parameters.push_back({kOut / biases});
  return spec;
}

// In which documents begin within sequences: where that of each token does.
OneOpSpec WithDocuments(const char* name, OneOpSpec spec) {
  static_assert(kBatch == 2 && kLength == 5);
  spec.name = name;
  const std::vector<int32_t> begin = {0, 0, 2, 2, 2, 0, 1, 1, 1, 4};
  spec.inputs.push_back({"documents", Rows(), I32, 0, begin});
  return spec;
}

std::vector<OneOpSpec> Kinds() {
  std::vector<OneOpSpec> kinds = {
      Embed("Embed", false),
      Embed("EmbedWithPositions", true),
      Dropout(),
      Norm("LayerNorm", false, false, false),
      Norm("LayerNormReadElsewhere", false, false, true),
      Norm("LayerNormOfASum", false, true, false),
      Norm("RmsNorm", true, false, false),
      Norm("RmsNormReadElsewhere", true, false, true),
      Norm("RmsNormOfASum", true, true, false),
      Linear({.name = "Linear", .out = {9}}),
      Linear({.name = "LinearInOutWithBias",
              .out = {9},
              .in_out = true,
              .bias = true}),
      Linear({.name = "LinearOfPaddedRows", .out = {9}, .row_alignment = 32}),
      // With 8 inputs the weights fill cache lines and lie side by side; with 7
      // they do not. Biases never do.
      Linear({.name = "LinearJoined", .in = 8, .out = {8, 4, 4}}),
      Linear({.name = "LinearWithGaps", .in = 7, .out = {8, 4, 4}}),
      Linear({.name = "LinearWithGapsOfBiases",
              .in = 8,
              .out = {8, 4, 4},
              .bias = true}),
      Linear({.name = "LinearInOutOfSeveral",
              .in = 8,
              .out = {8, 4, 4},
              .in_out = true,
              .bias = true}),
      Rope("Rope", 1.0),
      Rope("RopeWithAFactor", 1.3),
      Rope("RopeOfAPart", 1.0, /*head_dim=*/7),
      Attention("Attention", 3, 3, false),
      Attention("AttentionOfGroups", 4, 2, false),
      Attention("AttentionMasked", 2, 1, true),
      AttentionOfWidths(),
      JoinHeads(),
      JoinHeadsOfLatents("JoinHeadsOfLatents", false),
      JoinHeadsOfLatents("JoinHeadsOfInterleavedLatents", true),
      HeadNorm("HeadNorm", 4),
      HeadNorm("HeadNormOfGroups", 2),
      Gelu("Gelu", false),
      Gelu("GeluExact", true),
      SwiGlu(),
      Add(),
      PackHeads("PackHeads", Op::PACK),
      PackHeads("UnpackHeads", Op::UNPACK),
      PackRows("PackRows", Op::PACK, kBatch),
      PackRows("UnpackRows", Op::UNPACK, kBatch),
      PackRows("PackRowsOfOneSample", Op::PACK, 1),
      PackRows("UnpackRowsOfOneSample", Op::UNPACK, 1),
      Split(),
      Concat(),
      Fork(),
      Scores(),
      Softmax("Softmax", false),
      WeightedValues(),
      Weight(),
      Product("Product", true, 0),
      Product("ProductWithBias", true, 1),
      Product("ProductOfTransposed", false, 0),
      Product("ProductOfTransposedWithBiases", false, 2),
      WithDocuments("EmbedInDocuments", Embed("", true)),
      WithDocuments("RopeInDocuments", Rope("", 1.3)),
      WithDocuments("AttentionInDocuments", Attention("", 4, 2, false)),
      WithDocuments("AttentionInDocumentsMasked", Attention("", 2, 1, true)),
      WithDocuments("SoftmaxInDocuments", Softmax("", false)),
      CrossEntropy("CrossEntropy", 0),
      CrossEntropy("CrossEntropyOfPaddedRows", 32),
  };
  for (const auto& of : {KindsOfAdapters(), KindsOfExperts()})
    kinds.insert(kinds.end(), of.begin(), of.end());
  return kinds;
}

class KindsTest : public testing::TestWithParam<OneOpSpec> {};

void ChooseTokens(OneOp& op) {
  for (size_t i = 0; i < op.tokens.size(); ++i) {
    op.tokens[i] = static_cast<int32_t>(i * i % 3);
  }
}

TEST_P(KindsTest, BackwardAgreesWithFiniteDifferences) {
  OneOp op(GetParam(), F32);
  ChooseTokens(op);
  op.Forward();
  op.Backward();
  const auto loss = [&] { return op.Loss(); };
  for (OneOp::Operand& input : op.inputs) {
    if (!input.differentiable) continue;
    const std::vector<float> gradient = input.gradient;
    EXPECT_LT(GradientError(loss, absl::MakeSpan(input.value), gradient), 2e-3)
        << input.name;
  }
  const std::vector<float> gradients = op.parameter_gradients;
  EXPECT_LT(GradientError(loss, absl::MakeSpan(op.parameters), gradients),
            2e-3);
}

// In a type of fewer bits, each number within so much of itself.
void ExpectNearF32(const OneOpSpec& spec, ElementType type, double most) {
  OneOp f32(spec, F32);
  OneOp narrow(spec, type);
  for (OneOp* op : {&f32, &narrow}) {
    ChooseTokens(*op);
    op->Forward();
    op->Backward();
  }
  EXPECT_NEAR(narrow.Loss(), f32.Loss(), most * (1 + std::abs(f32.Loss())));
  for (size_t i = 0; i < f32.outputs.size(); ++i) {
    EXPECT_LT(RelativeError(narrow.outputs[i].value, f32.outputs[i].value),
              most)
        << f32.outputs[i].name;
  }
  for (size_t i = 0; i < f32.inputs.size(); ++i) {
    if (!f32.inputs[i].differentiable) continue;
    EXPECT_LT(RelativeError(narrow.inputs[i].gradient, f32.inputs[i].gradient),
              most)
        << f32.inputs[i].name;
  }
  EXPECT_LT(RelativeError(narrow.parameter_gradients, f32.parameter_gradients),
            most);
}

TEST_P(KindsTest, Bf16IsNearF32) { ExpectNearF32(GetParam(), BF16, 0.02); }
TEST_P(KindsTest, Fp16IsNearF32) { ExpectNearF32(GetParam(), F16, 0.005); }

INSTANTIATE_TEST_SUITE_P(Kinds, KindsTest, testing::ValuesIn(Kinds()),
                         [](const auto& info) { return info.param.name; });

TEST(KindsTableTest, HasEveryKind) {
  // No layer does the first two. The next four are nothing without other ranks:
  // tests/ops/cross_entropy_test, attention_part_test and split_norm_test hold
  // what they compute, tests/equivalence has the ranks.
  std::set<int> kinds = {
      Op::EXCHANGE,       Op::RETURN,   Op::CROSS_ENTROPY_PARTS,
      Op::ATTENTION_PART, Op::ROW_SUMS, Op::SPLIT_NORM};
  for (const OneOpSpec& spec : Kinds()) kinds.insert(spec.op.kind());
  for (int i = 0; i < Op::Kind_descriptor()->value_count(); ++i) {
    const auto& kind = *Op::Kind_descriptor()->value(i);
    if (kind.number() == Op::KIND_UNSPECIFIED) continue;
    EXPECT_EQ(kinds.count(kind.number()), 1) << kind.name();
  }
}

}  // namespace
}  // namespace troupe
