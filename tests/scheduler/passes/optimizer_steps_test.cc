#include "scheduler/passes/optimizer_steps.h"

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "proto/plan/program_order.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

TEST(OptimizerSteps, EveryRankStepsEveryUnitFirstUnitFirst) {
  const Draft draft = ExampleDraft(ExampleJob({.data = 2}), "optimizer steps");
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_TRUE(absl::EndsWith(ProgramWords(draft.plan, rank, Program::TRAIN),
                               " | A g0 | O u0 | O u1 | O u2 | O u3"));
  }
}

TEST(OptimizerSteps, FollowTheNormOverAllRanks) {
  Plan plan = ExamplePlan(ExampleJob({.data = 2}));
  const Program& train = ProgramOf(plan, 1, Program::TRAIN);
  const ProgramOrder order(train, plan.lanes_size());
  const int scalars = IndexOf(train, "A g0");
  for (const char* step : {"O u0", "O u1", "O u2", "O u3"}) {
    EXPECT_TRUE(order.Before(scalars, IndexOf(train, step)));
  }
}

}  // namespace
}  // namespace troupe
