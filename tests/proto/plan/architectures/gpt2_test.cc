#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/model.h"
#include "tests/proto/plan/gpt2_spec.h"

namespace troupe {
namespace {

using ::testing::StartsWith;

constexpr MicroBatchShape kShape = {.sequences = 3, .sequence_length = 17};

std::vector<Unit> UnitsOf(const ModelSpec& model,
                          const MicroBatchShape& shape = kShape) {
  return ModelUnits(model, shape)->units;
}

TEST(ModelGpt2Test, UnitsComeInOrderWithHuggingFaceNames) {
  const auto units = UnitsOf(Gpt2(2, 24, 3));
  ASSERT_EQ(units.size(), 4u);
  EXPECT_EQ(units[0].kind(), Unit::EMBEDDING);
  EXPECT_EQ(units[1].kind(), Unit::BLOCK);
  EXPECT_EQ(units[2].layer(), 1);
  EXPECT_EQ(units[3].kind(), Unit::HEAD);
  std::vector<std::string> names;
  for (const auto& parameter : units[2].parameters()) {
    names.push_back(parameter.name());
  }
  const std::string h = "transformer.h.1.";
  EXPECT_EQ(names,
            (std::vector<std::string>{
                h + "ln_1.weight", h + "ln_1.bias", h + "attn.c_attn.weight",
                h + "attn.c_attn.bias", h + "attn.c_proj.weight",
                h + "attn.c_proj.bias", h + "ln_2.weight", h + "ln_2.bias",
                h + "mlp.c_fc.weight", h + "mlp.c_fc.bias",
                h + "mlp.c_proj.weight", h + "mlp.c_proj.bias"}));
  EXPECT_EQ(units[3].tied(0).unit(), 0);
  EXPECT_EQ(units[3].tied(0).parameter(), "transformer.wte.weight");
}

// Two weights of all experts in place of the MLP's, without biases, and a
// router.
TEST(ModelGpt2Test, EveryOtherLayerMayHaveExperts) {
  ModelSpec model = Gpt2(2, 24, 3);
  model.set_num_experts(4);
  model.set_decoder_sparse_step(2);
  ASSERT_TRUE(ResolveModel(model).ok()) << ResolveModel(model);
  EXPECT_EQ(model.num_experts_per_tok(), 2);
  const auto units = UnitsOf(model);
  ASSERT_EQ(units.size(), 4u);
  EXPECT_EQ(units[1].parameters_size(), 12);
  const Unit& sparse = units[2];
  ASSERT_EQ(sparse.parameters_size(), 8 + 3);
  const std::string mlp = "transformer.h.1.mlp.";
  EXPECT_EQ(sparse.parameters(8).name(), mlp + "router.weight");
  EXPECT_EQ(sparse.parameters(9).name(), mlp + "experts.c_fc.weight");
  EXPECT_EQ(sparse.parameters(9).each_in(), mlp + "experts.*.c_fc.weight");
  EXPECT_EQ(sparse.parameters(10).name(), mlp + "experts.c_proj.weight");
  ModelSpec one = Gpt2(2, 24, 3);
  one.set_num_experts(4);
  one.mutable_experts()->set_routing("switch");
  ASSERT_TRUE(ResolveModel(one).ok()) << ResolveModel(one);
  EXPECT_EQ(one.num_experts_per_tok(), 1);
  EXPECT_EQ(one.decoder_sparse_step(), 1);
}

TEST(ModelGpt2Test, RefusesFieldsOfExpertsWithoutAny) {
  ModelSpec model = Gpt2(2, 24, 3);
  model.mutable_experts()->set_routing("switch");
  EXPECT_THAT(std::string(ResolveModel(model).message()),
              StartsWith("model.experts: is of a gpt2 with model.num_experts"));
  model.clear_experts();
  model.set_decoder_sparse_step(2);
  EXPECT_THAT(std::string(ResolveModel(model).message()),
              StartsWith("model.decoder_sparse_step: is of a gpt2 with"));
}

TEST(ModelGpt2Test, AnUntiedProjectionHasItsOwnTable) {
  ModelSpec model = Gpt2(12, 768, 12);
  model.set_tie_word_embeddings(false);
  const auto units = UnitsOf(model);
  EXPECT_EQ(ParameterCount(units), 124439808 + 50257 * 768);
  EXPECT_EQ(units.back().tied_size(), 0);
  EXPECT_EQ(units.back().parameters(2).name(), "lm_head.weight");
}

TEST(ModelGpt2Test, ParametersFillTheFlatBufferAlignedAndApart) {
  ModelSpec model = Gpt2(2, 27, 3);
  model.set_vocab_size(61);
  model.set_intermediate_size(71);
  for (const Unit& unit : UnitsOf(model)) {
    int64_t end = 0;
    for (const Parameter& parameter : unit.parameters()) {
      EXPECT_EQ(parameter.offset() % kFlatAlignment, 0) << parameter.name();
      EXPECT_GE(parameter.offset(), end) << parameter.name();
      EXPECT_LT(parameter.offset(), end + kFlatAlignment) << parameter.name();
      end = parameter.offset() + ElementsOf(parameter);
    }
    EXPECT_GE(unit.flat_elements(), end);
    EXPECT_LT(unit.flat_elements(), end + kFlatAlignment);
  }
}

TEST(ModelGpt2Test, InitialisesAndDecaysAsGpt2) {
  const auto units = UnitsOf(Gpt2(8, 24, 3));
  for (const Unit& unit : units) {
    for (const Parameter& p : unit.parameters()) {
      SCOPED_TRACE(p.name());
      const bool bias = p.name().find(".bias") != std::string::npos;
      const bool norm = p.name().find("ln_") != std::string::npos;
      const bool residual = p.name().find("c_proj.weight") != std::string::npos;
      EXPECT_EQ(p.weight_decay(), !bias && !norm);
      EXPECT_EQ(p.init(), bias   ? Parameter::ZEROS
                          : norm ? Parameter::ONES
                                 : Parameter::NORMAL);
      if (p.init() != Parameter::NORMAL) continue;
      EXPECT_DOUBLE_EQ(p.init_std(), residual ? 0.02 / 4 : 0.02);
    }
  }
}

TEST(ModelGpt2Test, RandomSitesAreUniqueAndIndependentOfTheShape) {
  std::set<int> sites;
  int parameters = 0;
  const auto units = UnitsOf(Gpt2(5, 24, 3));
  const auto others = UnitsOf(Gpt2(5, 24, 3), {9, 4});
  for (size_t u = 0; u < units.size(); ++u) {
    for (int i = 0; i < units[u].parameters_size(); ++i, ++parameters) {
      const int site = units[u].parameters(i).random_site();
      EXPECT_LT(site, 1 << 24);
      sites.insert(site);
      EXPECT_EQ(site, others[u].parameters(i).random_site());
    }
  }
  EXPECT_EQ(static_cast<int>(sites.size()), parameters);
}

TEST(ModelGpt2Test, BytesOfOddSizesAreSumsOfCacheLines) {
  ModelSpec model = Gpt2(1, 21, 3);
  model.set_vocab_size(61);
  const auto units = UnitsOf(model, {.sequences = 1, .sequence_length = 5});
  // 5 x 21 = 105 elements take 112; 3 x 105 take 320; 5 x 84 take 432.
  EXPECT_EQ(units[0].activation_bytes(), 112 * 4);
  EXPECT_EQ(units[0].stash_bytes(), 0);
  EXPECT_EQ(units[1].stash_bytes(),
            4 * (4 * 16 + 16 + 4 * 112 + 320 + 2 * 432));
  EXPECT_EQ(units[1].weight_stash_bytes(), 4 * (3 * 112 + 320 + 432));
  EXPECT_EQ(units[2].stash_bytes(), 4 * (2 * 16 + 112 + 5 * 64));
  EXPECT_EQ(units[2].activation_bytes(), 0);
}

TEST(ModelGpt2Test, Bf16HalvesAllButTheStatistics) {
  ModelSpec model = Gpt2(1, 64, 4);
  model.set_vocab_size(61);
  const MicroBatchShape shape = {.sequences = 2, .sequence_length = 32};
  MicroBatchShape half = shape;
  half.dtype = BF16;
  const auto units = UnitsOf(model, shape);
  const auto halves = UnitsOf(model, half);
  // Means and reciprocal deviations of 64 rows, log-sum-exps of 4 heads.
  const int64_t statistics[] = {0, 4 * (4 * 64 + 4 * 64), 4 * 2 * 64};
  for (size_t u = 0; u < units.size(); ++u) {
    SCOPED_TRACE(u);
    EXPECT_EQ(2 * (halves[u].stash_bytes() - statistics[u]),
              units[u].stash_bytes() - statistics[u]);
    EXPECT_EQ(2 * halves[u].activation_bytes(), units[u].activation_bytes());
    EXPECT_EQ(2 * halves[u].weight_stash_bytes(),
              units[u].weight_stash_bytes());
    EXPECT_EQ(2 * halves[u].workspace_bytes(), units[u].workspace_bytes());
    EXPECT_EQ(halves[u].flat_elements(), units[u].flat_elements());
    for (int i = 0; i < units[u].parameters_size(); ++i) {
      EXPECT_EQ(units[u].parameters(i).dtype(), F32);
      EXPECT_EQ(halves[u].parameters(i).dtype(), BF16);
      EXPECT_EQ(halves[u].parameters(i).offset(),
                units[u].parameters(i).offset());
    }
  }
}

// Products alone: 6 FLOPs for each weight of a matrix and token.
TEST(ModelGpt2Test, WorkOfTheUnitsAddsUpToTheModelFlops) {
  const ModelSpec model = Gpt2(12, 768, 12);
  double products = 0;
  int64_t matrices = 0;
  for (const Unit& unit : UnitsOf(model)) {
    products += unit.forward().matmul_flops() +
                unit.backward_input().matmul_flops() +
                unit.backward_weight().matmul_flops();
    for (const Parameter& p : unit.parameters()) {
      const bool table = p.name() == "transformer.wpe.weight";
      if (p.dims_size() == 2 && !table) matrices += ElementsOf(p);
    }
  }
  EXPECT_DOUBLE_EQ(products, 6.0 * matrices * 3 * 17);
}

TEST(ModelGpt2Test, ResolvesToWhatOpenAiChose) {
  ModelSpec model = Gpt2(2, 12, 3);
  model.clear_layer_norm_epsilon();
  model.clear_tie_word_embeddings();
  ASSERT_TRUE(ResolveModel(model).ok());
  EXPECT_EQ(model.layer_norm_epsilon(), 1e-5);
  EXPECT_TRUE(model.tie_word_embeddings());
}

TEST(ModelGpt2Test, RefusesWhatDoesNotFitWithTheWayOut) {
  EXPECT_EQ(ModelUnits(Gpt2(2, 12, 5), kShape).status().message(),
            "model.num_attention_heads: 5 does not divide model.hidden_size "
            "12; use 1, 2, 3, 4, 6 or 12");
  ModelSpec epsilon = Gpt2(2, 12, 3);
  epsilon.set_layer_norm_epsilon(0);
  EXPECT_THAT(std::string(ModelUnits(epsilon, kShape).status().message()),
              StartsWith("model.layer_norm_epsilon: 0 is out of range"));
}

}  // namespace
}  // namespace troupe
