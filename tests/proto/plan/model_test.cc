#include "proto/plan/model.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/proto/plan/gpt2_spec.h"

namespace troupe {
namespace {

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
            "model.architecture: no architecture is named 'gtp2'; use one of: "
            "gpt2");
}

}  // namespace
}  // namespace troupe
