#include "proto/plan/rope_fields.h"

#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/proto/plan/llama_spec.h"

namespace troupe {
namespace {

using ::testing::StartsWith;

ModelSpec WithScaling(const std::string& text) {
  ModelSpec model = Llama({.head_dim = 8});
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      text, model.mutable_rope_scaling()))
      << text;
  return model;
}

TEST(RopeFieldsTest, FillsTheDefaultsOfEachType) {
  ModelSpec plain = Llama({});
  plain.clear_rope_theta();
  SetRopeDefaults(plain);
  EXPECT_EQ(plain.rope_theta(), 10000);
  EXPECT_FALSE(plain.has_rope_scaling());

  ModelSpec yarn =
      WithScaling("type: 'yarn' original_max_position_embeddings: 1024");
  SetRopeDefaults(yarn);
  EXPECT_EQ(yarn.rope_scaling().factor(), 4);
  EXPECT_EQ(yarn.rope_scaling().beta_fast(), 32);
  EXPECT_EQ(yarn.rope_scaling().beta_slow(), 1);
  EXPECT_TRUE(yarn.rope_scaling().truncate());
  EXPECT_FALSE(yarn.rope_scaling().has_attention_factor());

  ModelSpec dynamic = WithScaling("type: 'dynamic' factor: 2");
  SetRopeDefaults(dynamic);
  EXPECT_EQ(dynamic.rope_scaling().original_max_position_embeddings(), 4096);

  ModelSpec linear = WithScaling("type: 'linear' factor: 2");
  SetRopeDefaults(linear);
  EXPECT_FALSE(linear.rope_scaling().has_original_max_position_embeddings());
  EXPECT_TRUE(CheckRope(linear).ok());
}

TEST(RopeFieldsTest, RefusesWithThePathAndTheWayOut) {
  const struct {
    const char* scaling;
    const char* message;
  } cases[] = {
      {"factor: 2",
       "model.rope_scaling.type: is missing; give linear, dynamic, llama3, "
       "yarn or longrope"},
      {"type: 'lineer' factor: 2",
       "model.rope_scaling.type: there is no \"lineer\"; use linear, "},
      {"type: 'linear'",
       "model.rope_scaling.factor: is missing; give how many"},
      {"type: 'linear' factor: 0.5",
       "model.rope_scaling.factor: 0.5 is out of range; use a number from 1"},
      {"type: 'linear' factor: 2 beta_fast: 3",
       "model.rope_scaling.beta_fast: is a field of yarn, not of linear; "
       "leave it out"},
      {"type: 'dynamic' factor: 2 attention_factor: 1",
       "model.rope_scaling.attention_factor: is a field of yarn or longrope, "
       "not of dynamic"},
      {"type: 'dynamic' factor: 2 original_max_position_embeddings: 0",
       "model.rope_scaling.original_max_position_embeddings: 0 is out of"},
      {"type: 'llama3' factor: 2 low_freq_factor: 1",
       "model.rope_scaling.high_freq_factor: is missing; give 4 as in"},
      {"type: 'llama3' factor: 2 low_freq_factor: 4 high_freq_factor: 4",
       "model.rope_scaling.high_freq_factor: 4 is out of range; use a number "
       "above 4"},
      {"type: 'yarn' factor: 2 beta_fast: 1 beta_slow: 2",
       "model.rope_scaling.beta_fast: 1 is out of range; use a number from 2"},
      {"type: 'yarn' factor: 2 mscale: -1",
       "model.rope_scaling.mscale: -1 is out of range"},
      {"type: 'longrope' factor: 2 short_factor: [1, 2, 3, 4]",
       "model.rope_scaling.long_factor: is missing; give half as many numbers "
       "as turn of a head"},
      {"type: 'longrope' short_factor: [1, 2, 3, 4] long_factor: [1, 2]",
       "model.rope_scaling.long_factor: has 2 numbers; give 4, half of the "
       "8 columns of a head that turn"},
      {"type: 'longrope' short_factor: [1, 2, 0, 4] long_factor: [1, 2, 3, 4]",
       "model.rope_scaling.short_factor: 0 is out of range; use a number "
       "above 0"},
  };
  for (const auto& expected : cases) {
    ModelSpec model = WithScaling(expected.scaling);
    SetRopeDefaults(model);
    const absl::Status status = CheckRope(model);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), StartsWith(expected.message));
  }
}

TEST(RopeFieldsTest, RefusesThetasThatDoNotTurn) {
  ModelSpec model = Llama({});
  model.set_rope_theta(1);
  EXPECT_THAT(std::string(CheckRope(model).message()),
              StartsWith("model.rope_theta: 1 is out of range"));
}

TEST(RopeFieldsTest, DynamicNeedsMoreThanOnePair) {
  ModelSpec model = WithScaling("type: 'dynamic' factor: 2");
  model.set_head_dim(2);
  SetRopeDefaults(model);
  EXPECT_EQ(CheckRope(model).message(),
            "model.rope_scaling.type: dynamic needs 4 columns of a head that "
            "turn, or more");
}

}  // namespace
}  // namespace troupe
