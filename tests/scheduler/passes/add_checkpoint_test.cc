#include "scheduler/passes/add_checkpoint.h"

#include "gtest/gtest.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

TEST(AddCheckpoint, EachRankWritesASliceOfEachUnit) {
  JobSpec job = ExampleJob({.data = 3, .blocks = 2});
  job.mutable_checkpoint()->set_directory("checkpoints");
  const Draft draft = ExampleDraft(job, "add checkpoint");
  EXPECT_EQ(ProgramWords(draft.plan, 2, Program::CHECKPOINT),
            "K u0 g0 | K u1 g0 | K u2 g0 | K u3 g0");
}

// Of a pipeline, its own units.
TEST(AddCheckpoint, OnlyOfUnitsThatAreThere) {
  JobSpec job = ExampleJob({.micro_batches = 2, .blocks = 2});
  job.mutable_model()->set_tie_word_embeddings(false);
  job.mutable_parallelism()->set_pipeline(2);
  job.mutable_checkpoint()->set_directory("checkpoints");
  const Draft draft = ExampleDraft(job, "add checkpoint");
  EXPECT_EQ(ProgramWords(draft.plan, 0, Program::CHECKPOINT), "K u0 | K u1");
  EXPECT_EQ(ProgramWords(draft.plan, 1, Program::CHECKPOINT), "K u2 | K u3");
}

TEST(AddCheckpoint, OnlyWhereTheJobSaves) {
  const Draft draft = ExampleDraft(ExampleJob({}), "add checkpoint");
  EXPECT_EQ(draft.plan.roles(0).programs_size(), 1);
}

}  // namespace
}  // namespace troupe
