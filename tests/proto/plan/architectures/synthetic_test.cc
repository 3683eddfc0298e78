#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/model.h"

namespace troupe {
namespace {

using ::testing::StartsWith;

ModelSpec Synthetic() {
  ModelSpec model;
  model.set_architecture("synthetic");
  model.set_units(3);
  model.add_forward_us(1000);
  return model;
}

std::string Refusal(void (*change)(ModelSpec&)) {
  ModelSpec model = Synthetic();
  change(model);
  return std::string(ResolveModel(model).message());
}

TEST(ModelSynthetic, OneValueIsThatOfAllUnits) {
  ModelSpec model = Synthetic();
  model.add_backward_weight_us(500);
  for (const int64_t bytes : {1000, 2000, 3000}) {
    model.add_activation_bytes(bytes);
    model.add_parameter_bytes(4 * bytes);
  }
  ASSERT_TRUE(ResolveModel(model).ok());
  const auto list = ModelUnits(model, {.sequences = 1, .sequence_length = 1});
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_TRUE(list->tables.empty());
  const std::vector<Unit>& units = list->units;
  ASSERT_EQ(units.size(), 3u);
  for (const Unit& unit : units) {
    EXPECT_EQ(unit.kind(), Unit::SYNTHETIC);
    EXPECT_DOUBLE_EQ(unit.forward().wait_seconds(), 1e-3);
    EXPECT_DOUBLE_EQ(unit.backward_input().wait_seconds(), 1e-3);
    EXPECT_DOUBLE_EQ(unit.backward_weight().wait_seconds(), 0.5e-3);
  }
  EXPECT_EQ(units[1].activation_bytes(), 2000);
  EXPECT_EQ(units[2].activation_bytes(), 3000);
  EXPECT_EQ(units[1].parameters(0).dims(0).sections(0).count(), 2000);
  EXPECT_EQ(ParameterCount(units), 6000);
  EXPECT_EQ(ModelFlopsPerToken(model, 1), 0);
  EXPECT_EQ(UnitCount(model), 3);
}

TEST(ModelSynthetic, ATransferAlwaysMovesSomething) {
  ModelSpec model = Synthetic();
  model.add_activation_bytes(0);
  ASSERT_TRUE(ResolveModel(model).ok());
  EXPECT_EQ(ModelUnits(model, {.sequences = 1})->units[0].activation_bytes(),
            64);
}

TEST(ModelSynthetic, Refuses) {
  EXPECT_THAT(Refusal([](ModelSpec& m) { m.clear_units(); }),
              StartsWith("model.units: is missing"));
  EXPECT_THAT(Refusal([](ModelSpec& m) { m.clear_forward_us(); }),
              StartsWith("model.forward_us: is missing"));
  EXPECT_THAT(Refusal([](ModelSpec& m) { m.add_forward_us(1); }),
              StartsWith("model.forward_us: 2 values for model.units 3; give "
                         "one, or 3"));
  EXPECT_THAT(Refusal([](ModelSpec& m) { m.set_forward_us(0, -1); }),
              StartsWith("model.forward_us: -1 is out of range"));
  EXPECT_THAT(Refusal([](ModelSpec& m) { m.add_activation_bytes(-1); }),
              StartsWith("model.activation_bytes: -1 is out of range"));
  EXPECT_THAT(Refusal([](ModelSpec& m) { m.set_hidden_size(8); }),
              StartsWith("model.hidden_size: is a field of transformers, not "
                         "of synthetic; leave it out"));
}

TEST(ModelSynthetic, OthersHaveNoneOfItsFields) {
  ModelSpec model = Synthetic();
  model.set_architecture("gpt2");
  EXPECT_THAT(std::string(ResolveModel(model).message()),
              StartsWith("model.units: is a field of synthetic, not of gpt2"));
}

}  // namespace
}  // namespace troupe
