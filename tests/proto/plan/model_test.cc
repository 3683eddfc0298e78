#include "proto/plan/model.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/proto/plan/gpt2_spec.h"

namespace troupe {
namespace {

using ::testing::StartsWith;

constexpr MicroBatchShape kShape = {.sequences = 3, .sequence_length = 17};

std::vector<Unit> UnitsOf(const ModelSpec& model,
                          const MicroBatchShape& shape = kShape) {
  const auto units = ModelUnits(model, shape);
  EXPECT_TRUE(units.ok()) << units.status();
  return *units;
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
  EXPECT_EQ(units.status().message(),
            "model.architecture: there is no \"gtp2\"; use gpt2; did you mean "
            "\"gpt2\"?");
  EXPECT_EQ(ResolveModel(model), units.status());
  model.clear_architecture();
  EXPECT_EQ(ResolveModel(model).message(),
            "model.architecture: is missing; give gpt2");
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
