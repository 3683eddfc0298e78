#include "proto/plan/optimizer_states.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/optimizer_rules.h"
#include "proto/plan/tensor_spec.h"
#include "proto/plan/unit_builder.h"

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
  EXPECT_EQ(StatesOf("adafactor", 0),
            (Names{"exp_avg_sq_row", "exp_avg_sq_col", "exp_avg_sq"}));
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
  const std::vector<UnitState> states = UnitStates(optimizer, unit);
  ASSERT_EQ(states.size(), 2u);
  for (const auto& [state, end] : {std::pair(0, 240), {1, 48}}) {
    EXPECT_TRUE(states[state].is_prefix());
    EXPECT_EQ(states[state].ElementsIn({0, 1008}), end);
    EXPECT_EQ(states[state].ElementsIn({0, end}), end);
  }
  EXPECT_EQ(StateElements(optimizer, unit, {0, 1008}), 288);
  EXPECT_EQ(StateElements(optimizer, unit, {40, 100}), 68);
  EXPECT_EQ(StateElements(optimizer, unit, {240, 1008}), 0);
  EXPECT_THAT(UnitStates(optimizer, UnitOf({{16, 3}})), IsEmpty());
  EXPECT_THAT(AllStates(optimizer),
              ElementsAre("exp_avg", "exp_avg_sq", "momentum"));
}

// Adafactor and, behind it, AdamW, both with an average; each with a matrix,
// two in one parameter, and a vector.
Unit UnitWithMatrices() {
  Unit unit = UnitOf({{160, 0}, {160, 1}});
  for (const int64_t begin : {0, 160}) {
    int64_t offset = begin;
    for (const std::vector<int64_t>& shape :
         std::vector<std::vector<int64_t>>{{3, 5}, {2, 4, 6}, {33}}) {
      Parameter& parameter = *unit.add_parameters();
      parameter.set_offset(offset);
      int64_t elements = 1;
      for (const int64_t size : shape) {
        *parameter.add_dims() = DimOf({{Dim::HIDDEN, size}});
        elements *= size;
      }
      offset += FlatAligned(elements);
    }
  }
  return unit;
}

// Each element of a state belongs to one element of the flat buffer, so that
// whatever ranges the buffer is cut into have all of the state, each once.
TEST(OptimizerStates, OfRowsAndColumnsBelongToElements) {
  OptimizerSpec optimizer;
  optimizer.set_name("adafactor");
  optimizer.mutable_ema();
  optimizer.add_groups()->set_name("adamw");
  const Unit unit = UnitWithMatrices();
  const std::vector<UnitState> states = UnitStates(optimizer, unit);
  ASSERT_EQ(states.size(), 4u);
  const int64_t rows = 3 + 2 * 4, columns = 5 + 2 * 6;
  EXPECT_EQ(states[0].ElementsIn({0, 320}), rows + 160);
  EXPECT_EQ(states[1].ElementsIn({0, 320}), columns + 160);
  EXPECT_EQ(states[2].ElementsIn({0, 320}), 33 + 160);  // AdamW's average
  EXPECT_EQ(states[3].ElementsIn({0, 320}), 160);
  EXPECT_EQ(StateElements(optimizer, unit, {0, 160}),
            rows + columns + 33 + 160);
  EXPECT_FALSE(states[0].is_prefix());
  EXPECT_TRUE(states[3].is_prefix());
  // Row 1 of the first matrix belongs to element 5, column 1 to element 1.
  EXPECT_EQ(states[0].ElementsIn({5, 6}), 1);
  EXPECT_EQ(states[0].ElementsIn({1, 5}), 0);
  EXPECT_EQ(states[1].ElementsIn({1, 2}), 1);
  EXPECT_EQ(states[1].ElementsIn({5, 15}), 0);
  for (const UnitState& state : states) {
    for (int64_t cut = 0; cut <= 320; ++cut) {
      EXPECT_EQ(state.ElementsIn({0, cut}) + state.ElementsIn({cut, 320}),
                state.ElementsIn({0, 320}));
    }
    int64_t one_by_one = 0;
    for (int64_t e = 0; e < 320; ++e) {
      const int64_t here = state.ElementsIn({e, e + 1});
      EXPECT_TRUE(here == 0 || here == 1);
      one_by_one += here;
    }
    EXPECT_EQ(one_by_one, state.ElementsIn({0, 320}));
  }
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
