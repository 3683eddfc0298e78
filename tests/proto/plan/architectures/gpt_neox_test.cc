#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/model.h"
#include "proto/plan/rope.h"
#include "proto/plan/slices.h"

namespace troupe {
namespace {

using ::testing::StartsWith;

constexpr MicroBatchShape kShape = {.sequences = 3, .sequence_length = 17};

ModelSpec Pythia160M() {
  ModelSpec model;
  model.set_architecture("gpt_neox");
  model.set_num_hidden_layers(12);
  model.set_hidden_size(768);
  model.set_num_attention_heads(12);
  model.set_vocab_size(50304);
  model.set_max_position_embeddings(2048);
  return model;
}

TEST(ModelGptNeoxTest, CountsTheParametersAsPublished) {
  ModelSpec model = Pythia160M();
  ASSERT_TRUE(ResolveModel(model).ok());
  const auto list = ModelUnits(model, kShape);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(ParameterCount(list->units), 162322944);
}

TEST(ModelGptNeoxTest, ResolvesToTransformersDefaults) {
  ModelSpec model = Pythia160M();
  ASSERT_TRUE(ResolveModel(model).ok());
  EXPECT_EQ(model.intermediate_size(), 3072);
  EXPECT_EQ(model.layer_norm_epsilon(), 1e-5);
  EXPECT_EQ(model.partial_rotary_factor(), 0.25);
  EXPECT_EQ(RotaryColumns(model), 16);
  EXPECT_EQ(model.rope_theta(), 10000);
  EXPECT_EQ(model.hidden_act(), "gelu");
  EXPECT_TRUE(model.use_parallel_residual());
  EXPECT_TRUE(model.attention_bias());
  EXPECT_FALSE(model.tie_word_embeddings());
  const std::string once = model.DebugString();
  ASSERT_TRUE(ResolveModel(model).ok());
  EXPECT_EQ(model.DebugString(), once);
}

TEST(ModelGptNeoxTest, QueriesKeysAndValuesArePartsOfOneTensor) {
  ModelSpec model = Pythia160M();
  ASSERT_TRUE(ResolveModel(model).ok());
  std::string text;
  const auto list = ModelUnits(model, kShape);
  ASSERT_TRUE(list.ok()) << list.status();
  for (const Parameter& parameter : list->units[2].parameters()) {
    if (!parameter.has_part_of()) continue;
    const Parameter::PartOf& part = parameter.part_of();
    text += parameter.name() + " " + std::to_string(WholeShape(parameter)[0]) +
            ": " + part.name() + " " + std::to_string(part.index()) + " of " +
            std::to_string(part.parts()) + " by " +
            std::to_string(part.rows()) + "\n";
  }
  const std::string p = "gpt_neox.layers.1.attention.";
  const std::string weight = ": " + p + "query_key_value.weight ";
  const std::string bias = ": " + p + "query_key_value.bias ";
  EXPECT_EQ(text, p + "query.weight 768" + weight + "0 of 3 by 64\n" +  //
                      p + "key.weight 768" + weight + "1 of 3 by 64\n" + p +
                      "value.weight 768" + weight + "2 of 3 by 64\n" + p +
                      "query.bias 768" + bias + "0 of 3 by 64\n" + p +
                      "key.bias 768" + bias + "1 of 3 by 64\n" + p +
                      "value.bias 768" + bias + "2 of 3 by 64\n");
}

TEST(ModelGptNeoxTest, RefusesWhatDoesNotFitWithTheWayOut) {
  const auto refusal = [](void (*spoil)(ModelSpec&)) {
    ModelSpec model = Pythia160M();
    spoil(model);
    return std::string(ResolveModel(model).message());
  };
  EXPECT_THAT(refusal([](ModelSpec& m) { m.set_num_attention_heads(5); }),
              StartsWith("model.num_attention_heads: 5 does not divide"));
  EXPECT_EQ(refusal([](ModelSpec& m) { m.set_partial_rotary_factor(0.05); }),
            "model.partial_rotary_factor: 0.05 of heads of 64 columns turns 3, "
            "but positions rotate pairs of numbers; use one that turns an even "
            "number of 2 or more");
  EXPECT_THAT(refusal([](ModelSpec& m) { m.set_partial_rotary_factor(1.5); }),
              StartsWith("model.partial_rotary_factor: 1.5 is out of range"));
  EXPECT_THAT(refusal([](ModelSpec& m) { m.set_hidden_act("relu"); }),
              StartsWith("model.hidden_act: there is no \"relu\""));
  EXPECT_THAT(refusal([](ModelSpec& m) { m.set_layer_norm_epsilon(0); }),
              StartsWith("model.layer_norm_epsilon: 0 is out of range"));
  EXPECT_THAT(refusal([](ModelSpec& m) { m.set_head_dim(64); }),
              StartsWith("model.head_dim: is a field of llama"));
}

}  // namespace
}  // namespace troupe
