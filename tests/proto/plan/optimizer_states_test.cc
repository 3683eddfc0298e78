#include "proto/plan/optimizer_states.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace troupe {
namespace {

std::vector<std::string> StatesOf(const std::string& name, double momentum) {
  OptimizerSpec optimizer;
  optimizer.set_name(name);
  optimizer.set_momentum(momentum);
  const auto states = OptimizerStates(optimizer);
  EXPECT_EQ(OptimizerMoments(optimizer), static_cast<int>(states.size()));
  return {states.begin(), states.end()};
}

TEST(OptimizerStates, AreWhatTheOptimizerKeeps) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(StatesOf("adamw", 0), (Names{"exp_avg", "exp_avg_sq"}));
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

}  // namespace
}  // namespace troupe
