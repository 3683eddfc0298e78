#include "proto/plan/model_fields.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/proto/plan/gpt2_spec.h"

namespace troupe {
namespace {

using ::testing::StartsWith;

TEST(ModelFieldsTest, EverySizeMustBeThereAndWithinBounds) {
  ASSERT_TRUE(CheckModelSizes(Gpt2(2, 12, 3)).ok());
  for (const char* name :
       {"num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size",
        "max_position_embeddings"}) {
    ModelSpec model = Gpt2(2, 12, 3);
    const auto* field = ModelSpec::descriptor()->FindFieldByName(name);
    const std::string path = std::string("model.") + name;
    for (const int value : {0, -1, 1 << 30}) {
      ModelSpec::GetReflection()->SetInt32(&model, field, value);
      EXPECT_EQ(CheckModelSizes(model).code(),
                absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(CheckModelSizes(model).message()),
                  StartsWith(path + ": " + std::to_string(value) +
                             " is out of range; use 1 to "));
    }
    ModelSpec::GetReflection()->ClearField(&model, field);
    EXPECT_THAT(std::string(CheckModelSizes(model).message()),
                StartsWith(path + ": is missing; give "));
  }
}

TEST(ModelFieldsTest, DefaultsFillWhatIsAbsent) {
  ModelSpec model = Gpt2(2, 12, 3);
  model.set_intermediate_size(7);
  SetModelDefaults(model);
  EXPECT_EQ(model.intermediate_size(), 7);
  model.clear_intermediate_size();
  model.clear_initializer_range();
  SetModelDefaults(model);
  EXPECT_EQ(model.intermediate_size(), 48);
  EXPECT_EQ(model.initializer_range(), 0.02);
  EXPECT_TRUE(CheckModelDefaults(model).ok());
  model.set_initializer_range(-1);
  EXPECT_THAT(std::string(CheckModelDefaults(model).message()),
              StartsWith("model.initializer_range: -1 is out of range"));
}

TEST(ModelFieldsTest, HeadsDivideTheWidth) {
  EXPECT_TRUE(CheckHeadsDivideWidth(Gpt2(2, 12, 3)).ok());
  EXPECT_EQ(CheckHeadsDivideWidth(Gpt2(2, 12, 5)).message(),
            "model.num_attention_heads: 5 does not divide model.hidden_size "
            "12; use 1, 2, 3, 4, 6 or 12");
}

TEST(ModelFieldsTest, TheMicroBatchFitsTheModel) {
  const ModelSpec model = Gpt2(2, 12, 3);
  EXPECT_TRUE(
      CheckMicroBatch(model, {.sequences = 1, .sequence_length = 1024}).ok());
  EXPECT_EQ(CheckMicroBatch(model, {.sequences = 1, .sequence_length = 1025})
                .message(),
            "training.sequence_length: 1025 is out of range; use 1 to 1024");
  EXPECT_THAT(
      std::string(CheckMicroBatch(model, {.sequences = 0, .sequence_length = 5})
                      .message()),
      StartsWith("training.micro_batch_size: 0 is out of range"));
}

TEST(ModelFieldsTest, ASequenceIsNoLongerThanTheWindow) {
  ModelSpec model = Gpt2(2, 12, 3);
  EXPECT_EQ(LongestSequenceOf(model).positions, 1024);
  model.set_sliding_window(1024);
  EXPECT_STREQ(LongestSequenceOf(model).field, "model.max_position_embeddings");
  model.set_sliding_window(8);
  EXPECT_EQ(LongestSequenceOf(model).positions, 8);
  EXPECT_STREQ(LongestSequenceOf(model).field, "model.sliding_window");
  EXPECT_TRUE(
      CheckMicroBatch(model, {.sequences = 1, .sequence_length = 8}).ok());
  EXPECT_EQ(
      CheckMicroBatch(model, {.sequences = 1, .sequence_length = 9}).message(),
      "training.sequence_length: 9 is out of range; use 1 to 8");
}

}  // namespace
}  // namespace troupe
