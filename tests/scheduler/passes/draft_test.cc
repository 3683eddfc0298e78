#include "scheduler/passes/draft.h"

#include "gtest/gtest.h"
#include "proto/plan/groups.h"
#include "tests/scheduler/example_plan.h"
#include "tests/scheduler/planned_lanes.h"

namespace troupe {
namespace {

TEST(Draft, FindsItsGroups) {
  EXPECT_EQ(WorldGroup(ExampleDraft(ExampleJob({.data = 2}), "").plan), 0);
  JobSpec job = ExampleJob({.data = 2, .micro_batches = 4});
  job.mutable_parallelism()->set_pipeline(2);
  job.mutable_parallelism()->set_tensor(2);
  const Plan plan = ExampleDraft(job, "").plan;
  EXPECT_EQ(GroupSize(plan.mesh(), plan.groups(WorldGroup(plan))), 8);
  EXPECT_EQ(plan.groups(TransferGroup(plan, /*gradient=*/true)).name(),
            "gradients");
  Op::Exchange along;
  along.add_axes("tensor");
  EXPECT_EQ(SpansText(plan.groups(ExchangeGroup(plan, along))), "tensor");
}

TEST(Draft, TiedUnitsShareGradients) {
  JobSpec job = ExampleJob({});
  EXPECT_EQ(GradientUnits(ExampleDraft(job, "").plan, 3),
            (std::vector<int>{0, 3}));
  EXPECT_EQ(GradientUnits(ExampleDraft(job, "").plan, 1),
            (std::vector<int>{1}));
  job.mutable_model()->set_tie_word_embeddings(false);
  EXPECT_EQ(GradientUnits(ExampleDraft(job, "").plan, 3),
            (std::vector<int>{3}));
}

// Each of the ranks that have a part the same does a slice of it.
TEST(Draft, PartsAreDealtToWhoHasThem) {
  const Draft draft = ExampleDraft(ExampleJob({.data = 3}), "");
  Program program;
  DealParts(draft.plan, draft.plan.roles(0).placements(1),
            {Instruction::SNAPSHOT, LaneFor(Instruction::SNAPSHOT)}, program);
  EXPECT_EQ(ProgramText(program), "K u1 g0\n");
  const Draft alone = ExampleDraft(ExampleJob({}), "");
  program.Clear();
  DealParts(alone.plan, alone.plan.roles(0).placements(1),
            {Instruction::GRAD_NORM, LaneFor(Instruction::GRAD_NORM)}, program);
  EXPECT_EQ(ProgramText(program), "N u1\n");
}

}  // namespace
}  // namespace troupe
