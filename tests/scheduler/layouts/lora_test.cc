#include "scheduler/layouts/lora.h"

#include <initializer_list>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/model.h"
#include "tests/scheduler/example_job.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

// Of a GPT-2, or of one with experts in each block.
absl::Status CheckModules(std::initializer_list<const char*> modules,
                          bool experts = false) {
  JobSpec job = ExampleJob({});
  if (experts) job.mutable_model()->set_num_experts(4);
  EXPECT_TRUE(ResolveModel(*job.mutable_model()).ok());
  LoraSpec& lora = *job.mutable_training()->mutable_lora();
  lora.set_rank(2);
  lora.set_alpha(2);
  for (const char* const module : modules) lora.add_modules(module);
  const auto units = ModelUnits(
      job.model(), {.sequences = 2, .sequence_length = 8, .lora = &lora});
  EXPECT_TRUE(units.ok()) << units.status();
  return CheckLora(job.training(), *units);
}

TEST(Lora, TakesLastPartsWholeNamesAndPatterns) {
  for (const char* const module :
       {"all-linear", "c_attn", "attn.c_proj", "transformer.h.0.mlp.c_fc",
        "*.h.1.*", "*.c_*"}) {
    EXPECT_TRUE(CheckModules({module}).ok()) << module;
  }
}

TEST(Lora, RefusesANameOfNoLayer) {
  EXPECT_THAT(CheckModules({"c_attn", "q_proj"}).message(),
              HasSubstr("training.lora.modules: \"q_proj\" names no layer of "
                        "this model"));
}

TEST(Lora, RefusesLayersThatHaveNoAdapters) {
  for (const char* const module : {"wte", "ln_1", "transformer.ln_f"}) {
    EXPECT_THAT(CheckModules({module}).message(),
                HasSubstr("names no layer that can have an adapter"))
        << module;
  }
  EXPECT_THAT(CheckModules({"router"}, /*experts=*/true).message(),
              HasSubstr("names no layer that can have an adapter"));
}

TEST(Lora, RefusesExperts) {
  EXPECT_THAT(CheckModules({"c_fc"}, /*experts=*/true).message(),
              HasSubstr("\"c_fc\" names weights of experts"));
  EXPECT_TRUE(CheckModules({"all-linear"}, /*experts=*/true).ok());
}

}  // namespace
}  // namespace troupe
