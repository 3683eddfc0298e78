#include "proto/plan/optimizer_states.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/optimizer_rules.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Names = std::vector<std::string>;

Names StatesOf(const std::string& name, double momentum) {
  OptimizerSpec optimizer;
  optimizer.set_name(name);
  optimizer.set_momentum(momentum);
  const auto states = StatesOfRule(optimizer, 0);
  return {states.begin(), states.end()};
}

TEST(OptimizerStates, AreWhatTheOptimizerKeeps) {
  EXPECT_EQ(StatesOf("adamw", 0), (Names{"exp_avg", "exp_avg_sq"}));
  EXPECT_EQ(StatesOf("lion", 0), Names{"exp_avg"});
  EXPECT_EQ(StatesOf("sgd", 0.9), Names{"momentum"});
  EXPECT_EQ(StatesOf("sgd", 0), Names{});
  EXPECT_EQ(StatesOf("none", 0), Names{});
}

TEST(OptimizerStates, AreTensorsOfACheckpoint) {
  const std::string name = StateTensorName("exp_avg", "wte.weight");
  EXPECT_EQ(name, "optimizer.exp_avg.wte.weight");
  EXPECT_TRUE(IsStateTensor(name));
  EXPECT_FALSE(IsStateTensor("wte.weight"));
}

// AdamW, and groups of Lion, of SGD with momentum and of plain SGD.
OptimizerSpec FourRules() {
  OptimizerSpec optimizer;
  optimizer.set_name("adamw");
  for (const auto& [name, momentum] :
       std::vector<std::pair<const char*, double>>{
           {"lion", 0}, {"sgd", 0.9}, {"sgd", 0}}) {
    OptimizerGroup& group = *optimizer.add_groups();
    group.set_name(name);
    group.set_momentum(momentum);
  }
  return optimizer;
}

struct PartOfUnit {
  int64_t elements;
  int rule;
  bool frozen = false;
};
Unit UnitOf(const std::vector<PartOfUnit>& parts) {
  Unit unit;
  for (const PartOfUnit& of : parts) {
    Unit::Part& part = *unit.add_parts();
    part.set_elements(of.elements);
    part.set_rule(of.rule);
    part.set_frozen(of.frozen);
  }
  return unit;
}

TEST(OptimizerStates, AreOfTheFirstElements) {
  const OptimizerSpec optimizer = FourRules();
  const Unit unit =
      UnitOf({{16, 0}, {32, 0}, {64, 1}, {128, 2}, {256, 3}, {512, 0, true}});
  EXPECT_THAT(StateRanges(optimizer, unit),
              ElementsAre(Range{0, 240}, Range{0, 48}));
  EXPECT_EQ(StateElements(optimizer, unit, {0, 1008}), 288);
  EXPECT_EQ(StateElements(optimizer, unit, {40, 100}), 68);
  EXPECT_EQ(StateElements(optimizer, unit, {240, 1008}), 0);
  EXPECT_THAT(StateRanges(optimizer, UnitOf({{16, 3}})), IsEmpty());
  EXPECT_THAT(AllStates(optimizer),
              ElementsAre("exp_avg", "exp_avg_sq", "momentum"));
}

TEST(OptimizerRules, OneRangeForEach) {
  const Unit unit =
      UnitOf({{16, 0}, {32, 0}, {64, 1}, {0, 2}, {256, 3}, {512, 0, true}});
  std::vector<Range> ranges;
  std::vector<int> rules;
  for (const RuleRange& range : RuleRanges(unit)) {
    ranges.push_back(range.range);
    rules.push_back(range.rule);
  }
  EXPECT_THAT(ranges,
              ElementsAre(Range{0, 48}, Range{48, 112}, Range{112, 368}));
  EXPECT_THAT(rules, ElementsAre(0, 1, 3));
}

}  // namespace
}  // namespace troupe
