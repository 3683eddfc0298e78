#include "scheduler/passes/expand_stages.h"

#include "gtest/gtest.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

// The TRAIN program of one rank with this order of one stage.
std::string Expanded(const std::vector<ComputeStep>& order) {
  Draft draft = ExampleDraft(ExampleJob({.micro_batches = 2, .blocks = 1}), "");
  draft.compute_order = {order};
  ExpandStages(draft);
  return ProgramWords(draft.plan, 0, Program::TRAIN);
}

constexpr auto kF = ComputeStep::kForward;
constexpr auto kI = ComputeStep::kBackwardInput;
constexpr auto kW = ComputeStep::kBackwardWeight;

TEST(ExpandStages, FusesBackwardUnitByUnit) {
  EXPECT_EQ(Expanded({{kF, 0, 0}, {kI, 0, 0}, {kW, 0, 0}}),
            "F u0 m0 | F u1 m0 | F u2 m0 | "
            "I u2 m0 | W u2 m0 | I u1 m0 | W u1 m0 | W u0 m0");
}

TEST(ExpandStages, KeepsThemApartWhereTheScheduleDoes) {
  EXPECT_EQ(Expanded({{kI, 0, 0}, {kI, 0, 1}, {kW, 0, 0}, {kW, 0, 1}}),
            "I u2 m0 | I u1 m0 | I u2 m1 | I u1 m1 | "
            "W u2 m0 | W u1 m0 | W u0 m0 | W u2 m1 | W u1 m1 | W u0 m1");
}

TEST(ExpandStages, AStageIsItsUnitsOnly) {
  Draft draft = ExampleDraft(ExampleJob({.blocks = 1}), "");
  draft.stage_units = {{0, 1}, {2}};
  draft.compute_order = {{{kF, 0, 0}, {kF, 1, 0}, {kI, 1, 0}, {kW, 1, 0}}};
  ExpandStages(draft);
  EXPECT_EQ(ProgramWords(draft.plan, 0, Program::TRAIN),
            "F u0 m0 | F u1 m0 | F u2 m0 | I u2 m0 | W u2 m0");
}

}  // namespace
}  // namespace troupe
