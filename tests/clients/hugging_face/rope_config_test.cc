#include "clients/hugging_face/rope_config.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

using nlohmann::json;

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
        Case{R"({"rotary_pct": 1.0, "rope_parameters": {
                 "partial_rotary_factor": 0.5}})",
             10000, 0.5}}) {
    SCOPED_TRACE(c.text);
    const nlohmann::json config = nlohmann::json::parse(c.text);
    ModelSpec model;
    ASSERT_TRUE(ReadRope(JsonFields(config, "c"), keys, model).ok());
    EXPECT_EQ(model.rope_theta(), c.theta);
    EXPECT_EQ(model.partial_rotary_factor(), c.part);
    nlohmann::json written = config;
    WriteRope(model, written);
    EXPECT_FALSE(written.contains("rotary_pct"));
    EXPECT_EQ(written["rope_parameters"]["partial_rotary_factor"], c.part);
  }
}

TEST(RopeConfig, RefusesWhatItCannotDo) {
  ModelSpec model;
  EXPECT_FALSE(Read(R"({"partial_rotary_factor": 0.5})", model).ok());
  EXPECT_FALSE(
      Read(R"({"rope_scaling": {"type": "yarn", "factor": "x"}})", model).ok());
  EXPECT_FALSE(Read(R"({"rope_scaling": 3})", model).ok());
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
  WriteRope(model, config);
  EXPECT_FALSE(config.contains("rope_scaling"));
  ModelSpec read;
  ASSERT_TRUE(Read(config.dump().c_str(), read).ok());
  EXPECT_EQ(read.SerializeAsString(), model.SerializeAsString());
}

}  // namespace
}  // namespace troupe
