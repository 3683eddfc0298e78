#include "clients/hugging_face/expand_model.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(ExpandHuggingFaceModel, FillsInWhatTheConfigSays) {
  ModelSpec model;
  model.set_hf("tests/oracle/hf/llama_tiny");
  ASSERT_TRUE(ExpandHuggingFaceModel(model).ok());
  EXPECT_EQ(model.architecture(), "llama");
  EXPECT_GT(model.hidden_size(), 0);
  EXPECT_EQ(model.hf(), "tests/oracle/hf/llama_tiny");
}

TEST(ExpandHuggingFaceModel, LeavesOthersAlone) {
  ModelSpec model;
  model.set_hidden_size(64);
  ASSERT_TRUE(ExpandHuggingFaceModel(model).ok());
  EXPECT_EQ(model.ByteSizeLong(), 2);
}

TEST(ExpandHuggingFaceModel, NothingMayStandBesideIt) {
  ModelSpec model;
  model.set_hf("tests/oracle/hf/llama_tiny");
  model.set_vocab_size(300);
  EXPECT_EQ(ExpandHuggingFaceModel(model).message(),
            "model.vocab_size: the config.json of model.hf says it; leave it "
            "out");
}

TEST(ExpandHuggingFaceModel, AnAbsentDirectoryIsNamed) {
  ModelSpec model;
  model.set_hf("/nowhere");
  const absl::Status status = ExpandHuggingFaceModel(model);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "model.hf: /nowhere/config.json: cannot be read; give a Hugging "
            "Face model's directory");
}

}  // namespace
}  // namespace troupe
