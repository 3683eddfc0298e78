#include "proto/plan/model.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/proto/plan/gpt2_spec.h"
#include "tests/proto/plan/llama_spec.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::StartsWith;

constexpr MicroBatchShape kShape = {.sequences = 3, .sequence_length = 17};

std::vector<Unit> UnitsOf(const ModelSpec& model,
                          const MicroBatchShape& shape = kShape) {
  const auto units = ModelUnits(model, shape);
  EXPECT_TRUE(units.ok()) << units.status();
  return units->units;
}

// The sizes that OpenAI published, counted as `transformers` counts them.
TEST(ModelTest, CountsTheParametersOfTheFourGpt2s) {
  EXPECT_EQ(ParameterCount(UnitsOf(Gpt2(12, 768, 12))), 124439808);
  EXPECT_EQ(ParameterCount(UnitsOf(Gpt2(24, 1024, 16))), 354823168);
  EXPECT_EQ(ParameterCount(UnitsOf(Gpt2(36, 1280, 20))), 774030080);
  EXPECT_EQ(ParameterCount(UnitsOf(Gpt2(48, 1600, 25))), 1557611200);
}

TEST(ModelTest, ModelFlopsAreTheClosedForm) {
  ModelSpec model = Gpt2(12, 768, 12);
  const double multiplied = 124439808 - 1024 * 768;
  EXPECT_DOUBLE_EQ(ModelFlopsPerToken(model, 1024),
                   6 * multiplied + 12.0 * 12 * 768 * 1024);
  model.set_tie_word_embeddings(false);  // the token table is only looked up
  EXPECT_DOUBLE_EQ(ModelFlopsPerToken(model, 512),
                   6 * multiplied + 12.0 * 12 * 768 * 512);
}

TEST(ModelTest, RefusesUnknownArchitectures) {
  ModelSpec model = Gpt2(2, 12, 3);
  model.set_architecture("gtp2");
  const auto units = ModelUnits(model, kShape);
  EXPECT_EQ(units.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(units.status().message()),
              AllOf(StartsWith("model.architecture: there is no \"gtp2\"; use "
                               "gpt2, "),
                    EndsWith(" or synthetic; did you mean \"gpt2\"?")));
  EXPECT_EQ(ResolveModel(model), units.status());
  model.clear_architecture();
  EXPECT_THAT(std::string(ResolveModel(model).message()),
              AllOf(StartsWith("model.architecture: is missing; give gpt2, "),
                    EndsWith(" or synthetic")));
}

TEST(ModelTest, RefusesFieldsOfAnotherArchitecture) {
  ModelSpec gpt2 = Gpt2(2, 12, 3);
  gpt2.mutable_rope_scaling();
  EXPECT_THAT(
      std::string(ResolveModel(gpt2).message()),
      AllOf(StartsWith("model.rope_scaling: is a field of gpt_neox, llama, "),
            EndsWith(", not of gpt2; leave it out")));
  ModelSpec llama = Llama({});
  llama.set_layer_norm_epsilon(1e-5);
  EXPECT_THAT(std::string(ModelUnits(llama, kShape).status().message()),
              AllOf(StartsWith("model.layer_norm_epsilon: is a field of gpt2"),
                    EndsWith(", not of llama; leave it out")));
}

// A field that some have and others have not.
TEST(ModelTest, RefusesFieldsThatOnlyRelativesHave) {
  ModelSpec mistral = Llama({});
  mistral.set_architecture("mistral");
  mistral.clear_attention_bias();
  EXPECT_EQ(ResolveModel(mistral).message(),
            "model.mlp_bias: is a field of llama, not of mistral; leave it "
            "out");
  mistral.clear_mlp_bias();
  EXPECT_TRUE(ResolveModel(mistral).ok()) << ResolveModel(mistral);
  ModelSpec llama = Llama({});
  llama.set_sliding_window(8);
  EXPECT_EQ(ResolveModel(llama).message(),
            "model.sliding_window: is a field of mistral, not of llama; leave "
            "it out");
}

// All but those of other architectures, rope_scaling, whose absence means none,
// and hf, which is where a model came from.
TEST(ModelTest, ResolvingLeavesNoFieldUnset) {
  for (const char* architecture : {"gpt2", "llama"}) {
    const bool gpt2 = architecture == std::string("gpt2");
    ModelSpec bare;
    bare.set_architecture(architecture);
    bare.set_num_hidden_layers(2);
    bare.set_hidden_size(12);
    bare.set_num_attention_heads(3);
    bare.set_vocab_size(61);
    bare.set_max_position_embeddings(64);
    ASSERT_TRUE(ResolveModel(bare).ok());
    std::vector<const google::protobuf::FieldDescriptor*> fields;
    ModelSpec::GetReflection()->ListFields(bare, &fields);
    const int unset = ModelSpec::descriptor()->field_count() -
                      static_cast<int>(fields.size());
    const int of_synthetic = 6;
    // sliding_window, those of gpt_neox, graph, experts, latents and modules
    const int of_others = 6 + 8 + 11 + 2;
    EXPECT_EQ(unset, of_synthetic + of_others + (gpt2 ? 7 + 1 : 1 + 2))
        << bare.DebugString();
  }
}

TEST(ModelTest, RefusesWhatDoesNotFit) {
  const auto refusal = [](const ModelSpec& model, MicroBatchShape shape) {
    return std::string(ModelUnits(model, shape).status().message());
  };
  EXPECT_THAT(refusal(Gpt2(0, 12, 3), kShape),
              StartsWith("model.num_hidden_layers: 0 is out of range"));
  EXPECT_THAT(refusal(Gpt2(2, 12, 5), kShape),
              StartsWith("model.num_attention_heads: 5 does not divide"));
  ModelSpec no_width = Gpt2(2, 12, 3);
  no_width.clear_intermediate_size();
  EXPECT_THAT(refusal(no_width, kShape),
              StartsWith("model.intermediate_size: 0 is out of range"));
  EXPECT_THAT(
      refusal(Gpt2(2, 12, 3), {.sequences = 1, .sequence_length = 1025}),
      StartsWith("training.sequence_length: 1025 is out of range; use 1 to "
                 "1024"));
}

}  // namespace
}  // namespace troupe
