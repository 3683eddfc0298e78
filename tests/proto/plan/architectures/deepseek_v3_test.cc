#include <cmath>
#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/model.h"

namespace troupe {
namespace {

using ::testing::StartsWith;

// Of the config.json of DeepSeek-V3 what is no default here.
ModelSpec Published() {
  ModelSpec model;
  model.set_architecture("deepseek_v3");
  model.set_num_hidden_layers(61);
  model.set_hidden_size(7168);
  model.set_num_attention_heads(128);
  model.set_intermediate_size(18432);
  model.set_vocab_size(129280);
  model.set_max_position_embeddings(163840);
  RopeScaling& scaling = *model.mutable_rope_scaling();
  scaling.set_type("yarn");
  scaling.set_factor(40);
  scaling.set_original_max_position_embeddings(4096);
  scaling.set_mscale(1);
  scaling.set_mscale_all_dim(1);
  return model;
}

ModelSpec Small() {
  ModelSpec model = Published();
  model.set_num_hidden_layers(2);
  model.set_hidden_size(16);
  model.set_num_attention_heads(4);
  model.set_first_k_dense_replace(1);
  return model;
}

// 671 billion, of which a token meets 37 (arXiv 2412.19437).
TEST(ModelDeepseekV3Test, CountsTheParametersAsPublished) {
  ModelSpec model = Published();
  ASSERT_EQ(ResolveModel(model), absl::OkStatus());
  const auto list = ModelUnits(model, {.sequences = 1, .sequence_length = 16});
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(ParameterCount(list->units), 671026404352);
  EXPECT_EQ(ActiveParameterCount(*list), 37552282624);
}

// 11.5 billion in the files' README, beside the tables that are shared.
TEST(ModelDeepseekV3Test, CountsTheParametersOfAModuleAsPublished) {
  ModelSpec model = Published();
  ASSERT_EQ(ResolveModel(model), absl::OkStatus());
  const auto without =
      ModelUnits(model, {.sequences = 1, .sequence_length = 16});
  model.set_num_nextn_predict_layers(1);
  model.clear_mtp_coefficient();
  ASSERT_EQ(ResolveModel(model), absl::OkStatus());
  EXPECT_EQ(model.mtp_coefficient(), 0.3);
  const auto with = ModelUnits(model, {.sequences = 1, .sequence_length = 16});
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_EQ(ParameterCount(with->units) - ParameterCount(without->units),
            11610067968);
  EXPECT_EQ(UnitCount(model), with->units.size());
}

// Modules are behind the units of the model, which are what they are without:
// text is generated, and jobs go on, with the first ones alone.
TEST(ModelDeepseekV3Test, ModulesLeaveTheModelAsItIs) {
  for (const bool tied : {false, true}) {
    ModelSpec model = Small();
    model.set_tie_word_embeddings(tied);
    model.set_num_nextn_predict_layers(2);
    ASSERT_EQ(ResolveModel(model), absl::OkStatus());
    const MicroBatchShape shape = {.sequences = 1, .sequence_length = 16};
    const auto with = ModelUnits(model, shape);
    const auto without = ModelUnits(WithoutModules(model), shape);
    ASSERT_EQ(with->units.size(), without->units.size() + 2);
    for (size_t u = 0; u < without->units.size(); ++u) {
      const Unit& unit = without->units[u];
      const Unit& same = with->units[u];
      EXPECT_EQ(same.flat_elements(), unit.flat_elements());
      ASSERT_EQ(same.parameters_size(), unit.parameters_size());
      for (int p = 0; p < unit.parameters_size(); ++p) {
        Parameter parameter = same.parameters(p);
        parameter.clear_also_in();
        EXPECT_EQ(parameter.SerializeAsString(),
                  unit.parameters(p).SerializeAsString());
      }
    }
    const Unit& last = with->units.back();
    ASSERT_EQ(last.tied_size(), 1);
    EXPECT_EQ(last.tied(0).unit(), tied ? 0 : 3);
    EXPECT_EQ(last.inputs(0).unit(), 4);
    EXPECT_EQ(last.inputs(1).unit(), 0);
    EXPECT_EQ(last.inputs(1).output(), 2);
  }
}

// The token table is only looked up. Scores are of 192 columns of each head,
// values of 128.
TEST(ModelDeepseekV3Test, ModelFlopsAreTheClosedForm) {
  ModelSpec model = Published();
  ASSERT_EQ(ResolveModel(model), absl::OkStatus());
  const double multiplied = 37552282624.0 - 129280.0 * 7168;
  const double want = 6 * multiplied + 6.0 * 61 * 128 * (192 + 128) * 4096;
  EXPECT_NEAR(ModelFlopsPerToken(model, 4096) / want, 1, 1e-12);
}

const Op* FirstOf(Op::Kind kind, const UnitList& list) {
  for (const UnitTable& table : list.tables) {
    for (const Op& op : table.ops()) {
      if (op.kind() == kind) return &op;
    }
  }
  return nullptr;
}

// Each of queries and keys would be multiplied by 0.1 ln 40 + 1.
TEST(ModelDeepseekV3Test, ScoresGrowWhereTheirPositionsAreStretched) {
  ModelSpec model = Small();
  ASSERT_EQ(ResolveModel(model), absl::OkStatus());
  const auto list = ModelUnits(model, {.sequences = 1, .sequence_length = 16});
  ASSERT_TRUE(list.ok()) << list.status();
  const Op* const attention = FirstOf(Op::ATTENTION, *list);
  ASSERT_NE(attention, nullptr);
  EXPECT_NEAR(attention->softmax().scale(),
              std::pow(0.1 * std::log(40.0) + 1, 2) / std::sqrt(192.0), 1e-12);
  const Op* const rope = FirstOf(Op::ROPE, *list);
  ASSERT_NE(rope, nullptr);
  EXPECT_EQ(rope->rope().training().inverse_frequencies_size(), 32);
  EXPECT_EQ(rope->rope().training().factor(), 1);
}

// The dense layers' tables have other adapters than those of the layers with
// experts, and they have masks of the model, too.
TEST(ModelDeepseekV3Test, NoTwoMasksAreAlike) {
  ModelSpec model = Small();
  model.set_num_hidden_layers(5);
  model.set_first_k_dense_replace(2);
  ASSERT_EQ(ResolveModel(model), absl::OkStatus());
  LoraSpec lora;
  lora.set_rank(4);
  lora.set_alpha(8);
  lora.set_dropout(0.1);
  lora.add_modules("all-linear");
  const auto list = ModelUnits(model, {.sequences = 1,
                                       .sequence_length = 16,
                                       .dropout = 0.1,
                                       .lora = &lora});
  ASSERT_TRUE(list.ok()) << list.status();
  std::set<int64_t> sites;
  int masks = 0;
  for (const Unit& unit : list->units) {
    for (const Op& op : list->tables[unit.table()].ops()) {
      if (!op.has_mask()) continue;
      ++masks;
      sites.insert(op.mask().site() +
                   int64_t{unit.layer()} * op.mask().sites_per_layer());
    }
  }
  EXPECT_GT(masks, 25);
  EXPECT_EQ(sites.size(), masks);
}

// The bias that chooses is the model's own: it is held still where the load is
// kept even in another way, and no state of the training.
TEST(ModelDeepseekV3Test, TheBiasIsOfTheModel) {
  for (const char* const balance : {"", "none", "sequence", "global"}) {
    SCOPED_TRACE(balance);
    ModelSpec model = Small();
    if (*balance != 0) model.mutable_experts()->set_balance(balance);
    ASSERT_EQ(ResolveModel(model), absl::OkStatus());
    const auto list =
        ModelUnits(model, {.sequences = 1, .sequence_length = 16});
    ASSERT_TRUE(list.ok()) << list.status();
    int biases = 0;
    for (const Unit& unit : list->units) {
      for (const Parameter& parameter : unit.parameters()) {
        if (parameter.name() !=
            "model.layers.1.mlp.gate.e_score_correction_bias") {
          continue;
        }
        ++biases;
        EXPECT_TRUE(parameter.load().of_model());
        EXPECT_EQ(parameter.frozen(), *balance != 0);
      }
    }
    EXPECT_EQ(biases, 1);
  }
}

TEST(ModelDeepseekV3Test, RefusesWhatDoesNotFit) {
  const auto expect = [](const char* text,
                         const std::function<void(ModelSpec&)>& set) {
    ModelSpec model = Small();
    set(model);
    EXPECT_THAT(std::string(ResolveModel(model).message()), StartsWith(text));
  };
  expect("model.head_dim: is a field of",
         [](ModelSpec& m) { m.set_head_dim(64); });
  expect("model.num_key_value_heads: is a field of",
         [](ModelSpec& m) { m.set_num_key_value_heads(4); });
  expect("model.qk_rope_head_dim: 3 is odd",
         [](ModelSpec& m) { m.set_qk_rope_head_dim(3); });
  expect("model.kv_lora_rank: ", [](ModelSpec& m) { m.set_kv_lora_rank(0); });
  expect("model.v_head_dim: ", [](ModelSpec& m) { m.set_v_head_dim(0); });
  expect("model.n_group: 7 does not divide model.num_experts 256",
         [](ModelSpec& m) { m.set_n_group(7); });
  expect("model.topk_group: ", [](ModelSpec& m) { m.set_topk_group(9); });
  expect("model.topk_group: the 4 experts of 1 of 2 groups are fewer than",
         [](ModelSpec& m) {
           m.set_num_experts(8);
           m.set_n_group(2);
           m.set_topk_group(1);
         });
  expect("model.num_nextn_predict_layers: ",
         [](ModelSpec& m) { m.set_num_nextn_predict_layers(8); });
  expect("model.mtp_coefficient: is of modules",
         [](ModelSpec& m) { m.set_mtp_coefficient(0.3); });
  expect("model.routed_scaling_factor: ",
         [](ModelSpec& m) { m.set_routed_scaling_factor(0); });
}

}  // namespace
}  // namespace troupe
