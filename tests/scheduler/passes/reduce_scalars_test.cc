#include "scheduler/passes/reduce_scalars.h"

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

TEST(ReduceScalars, EndsTrainAndValidate) {
  JobSpec job = ExampleJob({.data = 3});
  job.mutable_data()->set_validation_fraction(0.1);
  job.mutable_training()->set_validate_every(3);
  const Draft draft = ExampleDraft(job, "reduce scalars");
  for (const Program::Kind kind : {Program::TRAIN, Program::VALIDATE}) {
    EXPECT_TRUE(absl::EndsWith(ProgramWords(draft.plan, 2, kind), " | A g0"));
  }
}

TEST(ReduceScalars, OneRankHasNothingToSum) {
  const Draft draft = ExampleDraft(ExampleJob({}), "reduce scalars");
  EXPECT_FALSE(
      absl::StrContains(ProgramWords(draft.plan, 0, Program::TRAIN), "A"));
}

}  // namespace
}  // namespace troupe
