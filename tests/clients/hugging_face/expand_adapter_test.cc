#include "clients/hugging_face/expand_adapter.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/clients/hugging_face/round_trip.h"

namespace troupe {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kAdapter[] = "tests/oracle/peft/qwen3_tiny";

TrainingSpec Training(const std::string& adapter) {
  TrainingSpec training;
  training.mutable_lora()->set_adapter(adapter);
  return training;
}

// A copy of an adapter whose config was changed.
std::string Edited(const char* key, const json& value) {
  const std::string copy = FreshPath("edited");
  std::filesystem::copy(kAdapter, copy);
  const std::string path = copy + "/adapter_config.json";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  json config = json::parse(std::ifstream(path));
  config[key] = value;
  std::ofstream(path) << config;
  return copy;
}

TEST(ExpandAdapter, FillsInWhatTheConfigSays) {
  TrainingSpec training = Training(kAdapter);
  ASSERT_TRUE(ExpandAdapter(training).ok());
  const LoraSpec& lora = training.lora();
  EXPECT_EQ(lora.rank(), 2);
  EXPECT_EQ(lora.alpha(), 3);
  EXPECT_EQ(lora.dropout(), 0);
  EXPECT_TRUE(lora.rank_stabilized());
  EXPECT_EQ(lora.modules_size(), 14);
}

TEST(ExpandAdapter, LeavesOthersAlone) {
  TrainingSpec training;
  ASSERT_TRUE(ExpandAdapter(training).ok());
  EXPECT_FALSE(training.has_lora());
  training.mutable_lora()->set_rank(3);
  ASSERT_TRUE(ExpandAdapter(training).ok());
  EXPECT_FALSE(training.lora().has_alpha());
}

TEST(ExpandAdapter, TheJobMayHaveItsOwnDropoutAndModules) {
  TrainingSpec training = Training(kAdapter);
  training.mutable_lora()->set_dropout(0.1);
  training.mutable_lora()->add_modules("all-linear");
  ASSERT_TRUE(ExpandAdapter(training).ok());
  EXPECT_EQ(training.lora().dropout(), 0.1);
  EXPECT_THAT(training.lora().modules(), ElementsAre("all-linear"));
}

TEST(ExpandAdapter, RefusesOtherNumbersAndNamesBoth) {
  TrainingSpec training = Training(kAdapter);
  training.mutable_lora()->set_rank(8);
  EXPECT_EQ(
      ExpandAdapter(training).message(),
      absl::StrCat("training.lora.rank: is 8, but r of the adapter in ",
                   kAdapter, " is 2; leave it out to take the adapter's"));
  training = Training(kAdapter);
  training.mutable_lora()->set_alpha(8);
  EXPECT_THAT(std::string(ExpandAdapter(training).message()),
              HasSubstr("alpha: is 8, but lora_alpha of"));
  training = Training(kAdapter);
  training.mutable_lora()->set_rank_stabilized(false);
  EXPECT_THAT(std::string(ExpandAdapter(training).message()),
              HasSubstr("is false, but use_rslora of"));
}

TEST(ExpandAdapter, RefusesWhatIsMoreThanTwoMatrices) {
  const std::pair<const char*, json> more[] = {
      {"use_dora", true},
      {"bias", "all"},
      {"modules_to_save", {"lm_head"}},
      {"rank_pattern", {{"q_proj", 4}}},
      {"target_parameters", {"mlp.experts.gate_up_proj"}},
      {"init_lora_weights", "pissa"},
      {"alora_invocation_tokens", {1, 2}},
      {"peft_type", "IA3"},
      {"r", 0},
      {"r", 2.5},
      {"lora_alpha", "3"}};
  for (const auto& [key, value] : more) {
    TrainingSpec training = Training(Edited(key, value));
    const std::string message(ExpandAdapter(training).message());
    EXPECT_THAT(message, StartsWith("training.lora.adapter: ")) << key;
    EXPECT_THAT(message,
                HasSubstr(absl::StrCat("adapter_config.json: ", key, ": ")));
  }
}

// Then the tensors say which layers there are.
TEST(ExpandAdapter, AnExpressionIsReadOffTheWeights) {
  for (const auto& edited :
       {Edited("target_modules", ".*_proj"),
        Edited("exclude_modules", {"model.layers.7.mlp.up_proj"})}) {
    TrainingSpec training = Training(edited);
    ASSERT_TRUE(ExpandAdapter(training).ok());
    ASSERT_EQ(training.lora().modules_size(), 14);
    EXPECT_EQ(training.lora().modules(0), "model.layers.0.mlp.down_proj");
  }
}

TEST(ExpandAdapter, AnAbsentDirectoryIsNamed) {
  TrainingSpec training = Training("/nowhere/adapter");
  const std::string message(ExpandAdapter(training).message());
  EXPECT_THAT(message, StartsWith("training.lora.adapter: "));
  EXPECT_THAT(message, HasSubstr("/nowhere/adapter"));
}

}  // namespace
}  // namespace troupe
