#include "scheduler/passes/add_fill.h"

#include "gtest/gtest.h"
#include "tests/scheduler/example_plan.h"
#include "tests/scheduler/synthetic_job.h"

namespace troupe {
namespace {

// Rank r of P runs P - 1 - r micro-batches ahead, and that number of steps
// where each step has one.
TEST(AddFill, DoesWhatTheFirstStepsExpect) {
  Draft draft =
      ExampleDraft(SyntheticJob({.pipeline = 3, .schedule = "pipedream"}), "");
  AddFill(draft);
  EXPECT_EQ(ProgramWords(draft.plan, 0, Program::FILL),
            "F u0 m0 +1 | S u0 m0 +1 p1 g1 | F u0 m0 +2 | S u0 m0 +2 p1 g1");
  EXPECT_EQ(ProgramWords(draft.plan, 1, Program::FILL),
            "V u0 m0 +1 p0 g1 | F u1 m0 +1 | V u0 m0 +2 p0 g1 | "
            "S u1 m0 +1 p2 g1");
  EXPECT_EQ(ProgramWords(draft.plan, 2, Program::FILL), "V u1 m0 +1 p1 g1");
}

TEST(AddFill, SynchronousSchedulesHaveNone) {
  Draft draft =
      ExampleDraft(SyntheticJob({.pipeline = 3, .schedule = "1f1b"}), "");
  AddFill(draft);
  EXPECT_EQ(ProgramWords(draft.plan, 0, Program::FILL), "");
}

}  // namespace
}  // namespace troupe
