#include "scheduler/passes/add_validation.h"

#include "gtest/gtest.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

TEST(AddValidation, ForwardOnlyOverTheRanksShare) {
  JobSpec job = ExampleJob({.data = 2, .blocks = 1, .micro_batch_size = 2});
  job.mutable_data()->set_validation_fraction(0.1);
  job.mutable_training()->set_validate_every(3);
  // Seven sequences over two ranks of two: the last micro-batch is not full.
  job.mutable_training()->set_validation_sequences(7);
  const Draft draft = ExampleDraft(job, "add validation");
  EXPECT_EQ(draft.plan.derived().validation_micro_batches(), 2);
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(ProgramWords(draft.plan, rank, Program::VALIDATE),
              "F u0 m0 | F u1 m0 | F u2 m0 | F u0 m1 | F u1 m1 | F u2 m1");
  }
}

TEST(AddValidation, OnlyWhereTheJobValidates) {
  const Draft draft = ExampleDraft(ExampleJob({}), "add validation");
  EXPECT_EQ(draft.plan.roles(0).programs_size(), 1);
}

}  // namespace
}  // namespace troupe
