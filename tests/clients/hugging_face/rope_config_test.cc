#include "clients/hugging_face/rope_config.h"

#include <cmath>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

absl::Status Read(const char* text, ModelSpec& model) {
  const json config = json::parse(text);
  return ReadRope(JsonFields(config, "config.json"), {}, model);
}

TEST(RopeConfig, TheNewFormIsOneObject) {
  ModelSpec model;
  ASSERT_TRUE(Read(R"({"rope_parameters": {
      "rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0,
      "low_freq_factor": 1.0, "high_freq_factor": 4.0,
      "original_max_position_embeddings": 32}})",
                   model)
                  .ok());
  EXPECT_EQ(model.rope_theta(), 500000);
  EXPECT_EQ(model.rope_scaling().type(), "llama3");
  EXPECT_EQ(model.rope_scaling().factor(), 8);
  EXPECT_EQ(model.rope_scaling().high_freq_factor(), 4);
  EXPECT_EQ(model.rope_scaling().original_max_position_embeddings(), 32);
  EXPECT_FALSE(model.rope_scaling().has_beta_fast());
}

TEST(RopeConfig, TheOldFormIsTwoKeys) {
  ModelSpec model;
  ASSERT_TRUE(Read(R"({"rope_theta": 1000000, "rope_scaling": {
      "type": "linear", "factor": 2.0}})",
                   model)
                  .ok());
  EXPECT_EQ(model.rope_theta(), 1000000);
  EXPECT_EQ(model.rope_scaling().type(), "linear");
  EXPECT_EQ(model.rope_scaling().factor(), 2);
}

TEST(RopeConfig, LongropeListsAndTheFirstLengthBesideThem) {
  ModelSpec model;
  ASSERT_TRUE(Read(R"({"original_max_position_embeddings": 64,
      "rope_scaling": {"rope_type": "longrope", "short_factor": [1, 1.5],
                       "long_factor": [2, 3]}})",
                   model)
                  .ok());
  EXPECT_EQ(model.rope_theta(), 10000);
  EXPECT_EQ(model.rope_scaling().short_factor_size(), 2);
  EXPECT_EQ(model.rope_scaling().long_factor(1), 3);
  EXPECT_EQ(model.rope_scaling().original_max_position_embeddings(), 64);
}

TEST(RopeConfig, DefaultScalesNothing) {
  ModelSpec model;
  ASSERT_TRUE(Read(R"({"rope_parameters": {"rope_type": "default",
                                           "rope_theta": 5.0}})",
                   model)
                  .ok());
  EXPECT_FALSE(model.has_rope_scaling());
  EXPECT_EQ(model.rope_theta(), 5);
}

// Of GPT-NeoX, before transformers 5 and from then on.
TEST(RopeConfig, AFamilyMayTurnAPartOfEachHead) {
  const RopeKeys keys = {
      .theta = "rotary_emb_base", .part = "rotary_pct", .part_default = 0.25};
  struct Case {
    const char* text;
    double theta;
    double part;
  };
  for (const Case& c :
       {Case{"{}", 10000, 0.25},
        Case{R"({"rotary_emb_base": 500, "rotary_pct": 1.0})", 500, 1},
        Case{R"({"rope_parameters": {"rope_theta": 7.0}})", 7, 0.25},
        Case{R"({"rotary_pct": 0.5, "rope_parameters": {
                 "partial_rotary_factor": 0.5}})",
             10000, 0.5}}) {
    SCOPED_TRACE(c.text);
    const nlohmann::json config = nlohmann::json::parse(c.text);
    ModelSpec model;
    ASSERT_TRUE(ReadRope(JsonFields(config, "c"), keys, model).ok());
    EXPECT_EQ(model.rope_theta(), c.theta);
    EXPECT_EQ(model.partial_rotary_factor(), c.part);
    nlohmann::json written = config;
    WriteRope(model, keys, written);
    EXPECT_EQ(written["rotary_pct"], c.part);
    EXPECT_EQ(written["rotary_emb_base"], c.theta);
    EXPECT_EQ(written["rope_parameters"]["partial_rotary_factor"], c.part);
    EXPECT_EQ(written["rope_parameters"]["rope_theta"], c.theta);
  }
}

TEST(RopeConfig, RefusesWhatItCannotDo) {
  ModelSpec model;
  EXPECT_FALSE(Read(R"({"partial_rotary_factor": 0.5})", model).ok());
  EXPECT_FALSE(
      Read(R"({"rope_scaling": {"type": "yarn", "factor": "x"}})", model).ok());
  EXPECT_FALSE(Read(R"({"rope_scaling": 3})", model).ok());
}

// Transformers 4 and 5 differ in which of two keys they read.
TEST(RopeConfig, KeysThatDisagreeAreRefusedWithBoth) {
  struct Case {
    const char* text;
    const char* message;
  };
  for (const Case& c : {
           Case{
               R"({"rope_theta": 5.0, "rope_parameters": {"rope_theta": 6.0}})",
               "config.json: rope_parameters: rope_theta: is 6, but "
               "config.json: rope_theta is 5"},
           Case{R"({"rope_scaling": {"rope_type": "yarn", "type": "linear",
                                     "factor": 2}})",
                "config.json: rope_scaling: rope_type: is yarn, but "
                "config.json: rope_scaling: type is linear"},
           Case{R"({"rope_scaling": {"type": "linear", "factor": 2},
                    "rope_parameters": {"rope_type": "linear", "factor": 3}})",
                "config.json: rope_parameters: is an object whose factor is "
                "3.0, but that of config.json: rope_scaling is 2.0"},
           Case{R"({"rope_scaling": {"type": "linear", "factor": 2},
                    "rope_parameters": {"rope_theta": 10000}})",
                "whose type is default, but that of config.json: rope_scaling "
                "is linear"},
           Case{R"({"original_max_position_embeddings": 32,
                    "rope_scaling": {"type": "yarn", "factor": 4,
                        "original_max_position_embeddings": 64}})",
                "config.json: original_max_position_embeddings: is 32, but "
                "that within the object of RoPE is 64"},
           Case{R"({"original_max_position_embeddings": 64,
                    "rope_scaling": {"type": "longrope", "factor": 4,
                        "short_factor": [1], "long_factor": [2]}})",
                "config.json: original_max_position_embeddings: is 64, which "
                "makes the factor 2, but that within the object of RoPE is 4"},
       }) {
    ModelSpec model;
    model.set_max_position_embeddings(128);
    const absl::Status status = Read(c.text, model);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
    EXPECT_THAT(std::string(status.message()), HasSubstr("remove the wrong"));
  }
}

// There it is stretched from max_position_embeddings, whatever else is said.
TEST(RopeConfig, DynamicStretchesFromWhereTransformersDoes) {
  ModelSpec model;
  ASSERT_TRUE(Read(R"({"original_max_position_embeddings": 32,
      "rope_scaling": {"type": "dynamic", "factor": 2,
                       "original_max_position_embeddings": 64}})",
                   model)
                  .ok());
  EXPECT_FALSE(model.rope_scaling().has_original_max_position_embeddings());
  model.mutable_rope_scaling()->set_original_max_position_embeddings(64);
  json written = {{"max_position_embeddings", 160}};
  WriteRope(model, {}, written);
  EXPECT_EQ(written["max_position_embeddings"], 64);
  EXPECT_FALSE(
      written["rope_scaling"].contains("original_max_position_embeddings"));
}

TEST(RopeConfig, ALengthThatTransformersDoesNotReadIsNoMatter) {
  ModelSpec model;
  ASSERT_TRUE(Read(R"({"original_max_position_embeddings": 32,
      "rope_scaling": {"type": "linear", "factor": 2}})",
                   model)
                  .ok());
  EXPECT_FALSE(model.rope_scaling().has_original_max_position_embeddings());
}

TEST(RopeConfig, WrittenIsRead) {
  ModelSpec model;
  model.set_rope_theta(20000);
  RopeScaling& scaling = *model.mutable_rope_scaling();
  scaling.set_type("yarn");
  scaling.set_factor(4);
  scaling.set_truncate(false);
  scaling.set_original_max_position_embeddings(128);
  json config = {{"rope_theta", 1.0}, {"rope_scaling", {{"type", "linear"}}}};
  WriteRope(model, {}, config);
  // For each version of transformers what it reads.
  EXPECT_EQ(config["rope_theta"], 20000);
  EXPECT_EQ(config["rope_scaling"]["rope_type"], "yarn");
  EXPECT_EQ(config["rope_scaling"]["truncate"], false);
  EXPECT_EQ(config["rope_parameters"]["rope_theta"], 20000);
  EXPECT_EQ(config["rope_parameters"]["factor"], 4);
  ModelSpec read;
  ASSERT_TRUE(Read(config.dump().c_str(), read).ok());
  EXPECT_EQ(read.SerializeAsString(), model.SerializeAsString());
}

// Transformers 4 makes the factor of attention of the two lengths.
TEST(RopeConfig, LongropeIsWrittenForBothVersions) {
  ModelSpec model;
  model.set_rope_theta(10000);
  model.set_hidden_size(8);
  model.set_head_dim(4);
  RopeScaling& scaling = *model.mutable_rope_scaling();
  scaling.set_type("longrope");
  scaling.set_factor(3);
  scaling.set_original_max_position_embeddings(64);
  for (const double factor : {1.0, 2.0}) {
    scaling.add_short_factor(factor);
    scaling.add_long_factor(factor);
  }
  json written = json::object();
  WriteRope(model, {}, written);
  EXPECT_EQ(written["original_max_position_embeddings"], 64);
  EXPECT_NEAR(written["rope_scaling"]["attention_factor"].get<double>(),
              std::sqrt(1 + std::log(3) / std::log(64)), 1e-12);
  ModelSpec read;
  read.set_max_position_embeddings(128);
  ASSERT_TRUE(Read(written.dump().c_str(), read).ok());
  EXPECT_EQ(read.rope_scaling().original_max_position_embeddings(), 64);
}

}  // namespace
}  // namespace troupe
