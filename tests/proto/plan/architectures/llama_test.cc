#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/model.h"
#include "proto/plan/slices.h"
#include "tests/proto/plan/llama_spec.h"

namespace troupe {
namespace {

using ::testing::StartsWith;

constexpr MicroBatchShape kShape = {.sequences = 3, .sequence_length = 17};

std::vector<Unit> LlamaUnits(const ModelSpec& model,
                             const MicroBatchShape& shape) {
  return ModelUnits(model, shape)->units;
}

// As Meta published them.
TEST(ModelLlamaTest, CountsTheParametersOfMetasModels) {
  const LlamaSize llama_2_7b = {.layers = 32,
                                .hidden = 4096,
                                .heads = 32,
                                .kv_heads = 32,
                                .head_dim = 128,
                                .intermediate = 11008};
  EXPECT_EQ(ParameterCount(LlamaUnits(Llama(llama_2_7b), kShape)), 6738415616);
  ModelSpec llama_3_8b = Llama({.layers = 32,
                                .hidden = 4096,
                                .heads = 32,
                                .kv_heads = 8,
                                .head_dim = 128,
                                .intermediate = 14336});
  llama_3_8b.set_vocab_size(128256);
  EXPECT_EQ(ParameterCount(LlamaUnits(llama_3_8b, kShape)), 8030261248);
  ModelSpec llama_32_1b = Llama({.layers = 16,
                                 .hidden = 2048,
                                 .heads = 32,
                                 .kv_heads = 8,
                                 .head_dim = 64,
                                 .intermediate = 8192});
  llama_32_1b.set_vocab_size(128256);
  llama_32_1b.set_tie_word_embeddings(true);
  EXPECT_EQ(ParameterCount(LlamaUnits(llama_32_1b, kShape)), 1235814400);
}

TEST(ModelLlamaTest, ParametersHaveHuggingFacesNamesAndShapes) {
  ModelSpec model = Llama({});
  model.set_attention_bias(true);
  model.set_mlp_bias(true);
  const std::vector<Unit> units = LlamaUnits(model, kShape);
  ASSERT_EQ(units.size(), 4u);
  std::string text;
  for (const Parameter& parameter : units[2].parameters()) {
    text += parameter.name();
    for (const int64_t dim : WholeShape(parameter)) {
      text += " " + std::to_string(dim);
    }
    text += "\n";
  }
  const std::string p = "model.layers.1.";
  EXPECT_EQ(
      text,
      p + "input_layernorm.weight 12\n" +  //
          p + "self_attn.q_proj.weight 16 12\n" + p +
          "self_attn.k_proj.weight 8 12\n" + p +
          "self_attn.v_proj.weight 8 12\n" + p + "self_attn.q_proj.bias 16\n" +
          p + "self_attn.k_proj.bias 8\n" + p + "self_attn.v_proj.bias 8\n" +
          p + "self_attn.o_proj.weight 12 16\n" + p +
          "self_attn.o_proj.bias 12\n" + p +
          "post_attention_layernorm.weight 12\n" + p +
          "mlp.gate_proj.weight 20 12\n" + p + "mlp.up_proj.weight 20 12\n" +
          p + "mlp.gate_proj.bias 20\n" + p + "mlp.up_proj.bias 20\n" + p +
          "mlp.down_proj.weight 12 20\n" + p + "mlp.down_proj.bias 12\n");
  EXPECT_EQ(units[0].parameters(0).name(), "model.embed_tokens.weight");
  EXPECT_EQ(units[3].parameters(0).name(), "model.norm.weight");
  EXPECT_EQ(units[3].parameters(1).name(), "lm_head.weight");
}

TEST(ModelLlamaTest, ATiedProjectionIsTheEmbeddings) {
  ModelSpec model = Llama({});
  model.set_tie_word_embeddings(true);
  const Unit head = LlamaUnits(model, kShape).back();
  EXPECT_EQ(head.parameters_size(), 1);
  EXPECT_EQ(head.tied(0).unit(), 0);
  EXPECT_EQ(head.tied(0).parameter(), "model.embed_tokens.weight");
}

// No scaling of the residual projections: as `transformers` initialises.
TEST(ModelLlamaTest, InitialisesAndDecaysAsTransformers) {
  ModelSpec model = Llama({});
  model.set_attention_bias(true);
  for (const Unit& unit : LlamaUnits(model, kShape)) {
    for (const Parameter& p : unit.parameters()) {
      SCOPED_TRACE(p.name());
      const bool bias = p.name().find(".bias") != std::string::npos;
      const bool norm = p.name().find("norm") != std::string::npos;
      EXPECT_EQ(p.weight_decay(), !bias && !norm);
      EXPECT_EQ(p.init(), bias   ? Parameter::ZEROS
                          : norm ? Parameter::ONES
                                 : Parameter::NORMAL);
      if (p.init() == Parameter::NORMAL) {
        EXPECT_EQ(p.init_std(), 0.02);
      }
    }
  }
}

TEST(ModelLlamaTest, ProjectionsOfOneInputLieSideBySide) {
  const Unit block = LlamaUnits(Llama({.hidden = 32}), kShape)[1];
  for (int i = 0; i + 1 < block.parameters_size(); ++i) {
    const Parameter& one = block.parameters(i);
    EXPECT_EQ(one.offset() + ElementsOf(one), block.parameters(i + 1).offset())
        << one.name();
  }
}

TEST(ModelLlamaTest, BytesOfOddSizesAreSumsOfCacheLines) {
  ModelSpec model = Llama({.layers = 1});
  model.set_vocab_size(61);
  // 5 rows: C 12, F 20, A 16, K 8. In f32 60 elements take 64, 160 160, 80 80,
  // 200 208 and 100 112; statistics of 5 rows take 16.
  MicroBatchShape shape = {.sequences = 1, .sequence_length = 5};
  const std::vector<Unit> units = LlamaUnits(model, shape);
  EXPECT_EQ(units[0].activation_bytes(), 4 * 64);
  EXPECT_EQ(units[0].workspace_bytes(), 0);
  EXPECT_EQ(units[1].stash_bytes(),
            4 * (3 * 16 + 64 + 160 + 80 + 64 + 64 + 208 + 112));
  EXPECT_EQ(units[1].weight_stash_bytes(), 4 * (3 * 64 + 160 + 208));
  EXPECT_EQ(units[1].workspace_bytes(), 4 * 112);
  EXPECT_EQ(units[2].stash_bytes(), 4 * (16 + 64 + 5 * 64));
  // In bf16 60 elements take 64, 160 160, 80 96, 200 224 and 100 128.
  shape.dtype = BF16;
  EXPECT_EQ(LlamaUnits(model, shape)[1].stash_bytes(),
            4 * 3 * 16 + 2 * (64 + 160 + 96 + 64 + 64 + 224 + 128));
}

// Products alone: 6 FLOPs for each weight of a matrix and token.
TEST(ModelLlamaTest, WorkOfTheUnitsAddsUpToTheModelFlops) {
  const ModelSpec model = Llama({});
  double products = 0;
  for (const Unit& unit : LlamaUnits(model, kShape)) {
    products += unit.forward().matmul_flops() +
                unit.backward_input().matmul_flops() +
                unit.backward_weight().matmul_flops();
  }
  const double norms = 2 * 2 * 12 + 12;
  const double table = 1.0 * model.vocab_size() * model.hidden_size();
  const double multiplied =
      ParameterCount(LlamaUnits(model, kShape)) - norms - table;
  EXPECT_DOUBLE_EQ(products, 6.0 * multiplied * 3 * 17);
  EXPECT_DOUBLE_EQ(ModelFlopsPerToken(model, 17),
                   6.0 * (multiplied + norms) + 12.0 * 2 * (2 * 8) * 17);
}

TEST(ModelLlamaTest, ResolvesToTransformersDefaults) {
  ModelSpec model;
  model.set_architecture("llama");
  model.set_num_hidden_layers(2);
  model.set_hidden_size(24);
  model.set_num_attention_heads(3);
  model.set_vocab_size(61);
  model.set_max_position_embeddings(64);
  ASSERT_TRUE(ResolveModel(model).ok()) << ResolveModel(model);
  EXPECT_EQ(model.intermediate_size(), 96);
  EXPECT_EQ(model.num_key_value_heads(), 3);
  EXPECT_EQ(model.head_dim(), 8);
  EXPECT_EQ(model.rms_norm_eps(), 1e-6);
  EXPECT_EQ(model.rope_theta(), 10000);
  EXPECT_FALSE(model.tie_word_embeddings());
  const std::string once = model.DebugString();
  ASSERT_TRUE(ResolveModel(model).ok());
  EXPECT_EQ(model.DebugString(), once);
}

TEST(ModelLlamaTest, RefusesWhatDoesNotFitWithTheWayOut) {
  const auto refusal = [](ModelSpec model) {
    return std::string(ModelUnits(model, kShape).status().message());
  };
  EXPECT_EQ(refusal(Llama({.heads = 6, .kv_heads = 4})),
            "model.num_key_value_heads: 4 does not divide "
            "model.num_attention_heads 6; use 1, 2, 3 or 6");
  EXPECT_THAT(refusal(Llama({.heads = 2, .kv_heads = 4})),
              StartsWith("model.num_key_value_heads: 4 is out of range"));
  EXPECT_EQ(refusal(Llama({.head_dim = 7})),
            "model.head_dim: 7 is odd, but positions rotate pairs of numbers; "
            "use an even one");
  EXPECT_THAT(refusal(Llama({.head_dim = 0})),
              StartsWith("model.head_dim: 0 is out of range"));
  ModelSpec model = Llama({});
  model.set_rms_norm_eps(0);
  EXPECT_THAT(refusal(model), StartsWith("model.rms_norm_eps: 0 is out of"));
  ModelSpec undivided = Llama({.hidden = 13});
  undivided.clear_head_dim();
  EXPECT_THAT(std::string(ResolveModel(undivided).message()),
              StartsWith("model.num_attention_heads: 2 does not divide "
                         "model.hidden_size 13"));
}

}  // namespace
}  // namespace troupe
