#include "scheduler/passes/add_checkpoint.h"

#include "gtest/gtest.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

TEST(AddCheckpoint, EachUnitOnOneRank) {
  JobSpec job = ExampleJob({.data = 3, .blocks = 2});
  job.mutable_checkpoint()->set_directory("checkpoints");
  const Draft draft = ExampleDraft(job, "add checkpoint");
  EXPECT_EQ(ProgramWords(draft.plan, 0, Program::CHECKPOINT), "K u1");
  EXPECT_EQ(ProgramWords(draft.plan, 1, Program::CHECKPOINT), "K u2");
  EXPECT_EQ(ProgramWords(draft.plan, 2, Program::CHECKPOINT), "K u0 | K u3");
}

TEST(AddCheckpoint, RanksWithoutAUnitHaveAnEmptyProgram) {
  JobSpec job = ExampleJob({.data = 8, .blocks = 1});
  job.mutable_checkpoint()->set_directory("checkpoints");
  const Plan plan = ExamplePlan(job);
  EXPECT_EQ(ProgramWords(plan, 7, Program::CHECKPOINT), "");
  EXPECT_EQ(plan.ranks(7).programs_size(), 2);
}

TEST(AddCheckpoint, OnlyWhereTheJobSaves) {
  const Draft draft = ExampleDraft(ExampleJob({}), "add checkpoint");
  EXPECT_EQ(draft.plan.ranks(0).programs_size(), 1);
}

}  // namespace
}  // namespace troupe
