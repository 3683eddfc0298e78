#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/model.h"
#include "tests/proto/plan/llama_spec.h"

namespace troupe {
namespace {

using ::testing::StartsWith;

// Mistral-7B-v0.1.
ModelSpec Mistral7B() {
  ModelSpec model = LlamaRelative("mistral", {.layers = 32,
                                              .hidden = 4096,
                                              .heads = 32,
                                              .kv_heads = 8,
                                              .head_dim = 128,
                                              .intermediate = 14336});
  model.set_max_position_embeddings(32768);
  model.set_sliding_window(4096);
  return model;
}

TEST(ModelMistralTest, CountsTheParametersAsPublished) {
  const auto list =
      ModelUnits(Mistral7B(), {.sequences = 1, .sequence_length = 4096});
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(ParameterCount(list->units), 7241732096);
}

TEST(ModelMistralTest, IsLlamaWithoutBiases) {
  const MicroBatchShape shape = {.sequences = 1, .sequence_length = 17};
  ModelSpec mistral = LlamaRelative("mistral", {});
  mistral.set_sliding_window(17);
  const auto list = ModelUnits(mistral, shape);
  const auto llama = ModelUnits(Llama({}), shape);
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->units.size(), llama->units.size());
  for (size_t u = 0; u < list->units.size(); ++u) {
    EXPECT_EQ(list->units[u].DebugString(), llama->units[u].DebugString());
  }
}

TEST(ModelMistralTest, RefusesSequencesThatTheWindowCuts) {
  EXPECT_EQ(ModelUnits(Mistral7B(), {.sequences = 1, .sequence_length = 4097})
                .status()
                .message(),
            "training.sequence_length: 4097 is out of range; use 1 to 4096");
  ModelSpec model = Mistral7B();
  model.clear_sliding_window();
  EXPECT_TRUE(
      ModelUnits(model, {.sequences = 1, .sequence_length = 32768}).ok());
  model.set_sliding_window(0);
  EXPECT_THAT(std::string(ResolveModel(model).message()),
              StartsWith("model.sliding_window: 0 is out of range"));
}

}  // namespace
}  // namespace troupe
