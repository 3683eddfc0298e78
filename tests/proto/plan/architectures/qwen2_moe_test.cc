#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/model.h"
#include "tests/proto/plan/llama_spec.h"

namespace troupe {
namespace {

using ::testing::StartsWith;

// Qwen1.5-MoE-A2.7B: 14.3 billion, of which a token meets 2.7.
TEST(ModelQwen2MoeTest, CountsTheParametersAsPublished) {
  ModelSpec model = LlamaRelative("qwen2_moe", {.layers = 24,
                                                .hidden = 2048,
                                                .heads = 16,
                                                .kv_heads = 16,
                                                .head_dim = 128,
                                                .intermediate = 5632});
  model.set_vocab_size(151936);
  ASSERT_TRUE(ResolveModel(model).ok());
  const auto list = ModelUnits(model, {.sequences = 3, .sequence_length = 17});
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(ParameterCount(list->units), 14315784192);
  EXPECT_EQ(ActiveParameterCount(*list), 2689173504);
}

// State of routers is no weight.
TEST(ExpertsFieldsTest, StateIsNotCounted) {
  ModelSpec model = LlamaRelative("mixtral", {.layers = 2});
  const auto count = [](ModelSpec of) {
    EXPECT_EQ(ResolveModel(of), absl::OkStatus());
    const auto list = ModelUnits(of, {.sequences = 1, .sequence_length = 4});
    EXPECT_TRUE(list.ok()) << list.status();
    return ParameterCount(list->units);
  };
  const int64_t without = count(model);
  model.mutable_experts()->set_balance("bias");
  EXPECT_EQ(count(model), without);
}

TEST(ExpertsFieldsTest, RefusesWhatDoesNotFit) {
  const auto expect = [](const char* text, auto set) {
    ModelSpec model = LlamaRelative("mixtral", {.layers = 2});
    set(model, *model.mutable_experts());
    EXPECT_THAT(std::string(ResolveModel(model).message()), StartsWith(text));
  };
  expect("model.experts.routing: there is no \"lossless\"",
         [](ModelSpec&, ExpertsSpec& e) { e.set_routing("lossless"); });
  expect("model.experts.balance: there is no \"all\"",
         [](ModelSpec&, ExpertsSpec& e) { e.set_balance("all"); });
  expect("model.experts.capacity_factor: is used with routing capacity",
         [](ModelSpec&, ExpertsSpec& e) { e.set_capacity_factor(1); });
  expect("model.experts.balance_coefficient: is used with balance",
         [](ModelSpec&, ExpertsSpec& e) { e.set_balance_coefficient(1); });
  expect("model.experts.bias_rate: is used with balance bias",
         [](ModelSpec&, ExpertsSpec& e) { e.set_bias_rate(1); });
  expect("model.experts.routing: switch gives each token 1 expert, but",
         [](ModelSpec&, ExpertsSpec& e) { e.set_routing("switch"); });
  expect("model.experts.routing: gshard gives each token 2 experts, but",
         [](ModelSpec& m, ExpertsSpec& e) {
           m.set_num_experts_per_tok(3);
           e.set_routing("gshard");
         });
  expect("model.experts.capacity_factor: ", [](ModelSpec&, ExpertsSpec& e) {
    e.set_routing("capacity");
    e.set_capacity_factor(0);
  });
  ModelSpec dense = LlamaRelative("llama", {.layers = 2});
  dense.mutable_experts()->set_balance("none");
  EXPECT_THAT(std::string(ResolveModel(dense).message()),
              StartsWith("model.experts: is a field of gpt2, mixtral"));
}

}  // namespace
}  // namespace troupe
