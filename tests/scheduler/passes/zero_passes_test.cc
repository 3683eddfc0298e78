#include <string>

#include "gtest/gtest.h"
#include "scheduler/passes/gather_parameters.h"
#include "scheduler/passes/scatter_gradients.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

// The step of rank 0, with a tied table.
std::string Step(int zero, bool reshard) {
  JobSpec job = ExampleJob({.data = 2, .micro_batches = 2, .blocks = 1});
  job.mutable_parallelism()->set_zero(zero);
  job.mutable_parallelism()->set_reshard_after_forward(reshard);
  return ProgramWords(ExampleDraft(job, "scatter gradients").plan, 0,
                      Program::TRAIN);
}

TEST(ZeroPasses, GatherOnceAndScatterOnceWhereOnlyStatesAreDealt) {
  EXPECT_EQ(Step(1, false),
            "L m0 | L m1 | G u0 g1 | F u0 m0 | G u1 g1 | F u1 m0 | G u2 g1 | "
            "F u2 m0 | I u2 m0 | W u2 m0 | I u1 m0 | W u1 m0 | W u0 m0 | "
            "F u0 m1 | F u1 m1 | F u2 m1 | I u2 m1 | W u2 m1 | T u2 g0 | "
            "I u1 m1 | W u1 m1 | T u1 g0 | W u0 m1 | T u0 g0");
}

TEST(ZeroPasses, ScatterEachMicroBatchWhereGradientsAreDealt) {
  EXPECT_EQ(Step(2, false),
            "L m0 | L m1 | G u0 g1 | F u0 m0 | G u1 g1 | F u1 m0 | G u2 g1 | "
            "F u2 m0 | I u2 m0 | W u2 m0 | T u2 m0 g0 | I u1 m0 | W u1 m0 | "
            "T u1 m0 g0 | W u0 m0 | T u0 m0 g0 | "
            "F u0 m1 | F u1 m1 | F u2 m1 | I u2 m1 | W u2 m1 | T u2 m1 g0 | "
            "I u1 m1 | W u1 m1 | T u1 m1 g0 | W u0 m1 | T u0 m1 g0");
  EXPECT_EQ(Step(3, false), Step(2, false));
}

// The head's table is the embedding's. Backward begins with what forward ended
// with.
TEST(ZeroPasses, GatherForEachUseWhereParametersAreGivenBack) {
  EXPECT_EQ(
      Step(3, true),
      "L m0 | L m1 | G u0 g1 | F u0 m0 | G u1 g1 | F u1 m0 | G u0 g1 | "
      "G u2 g1 | F u2 m0 | I u2 m0 | W u2 m0 | T u2 m0 g0 | G u1 g1 | "
      "I u1 m0 | W u1 m0 | T u1 m0 g0 | W u0 m0 | T u0 m0 g0 | "
      "G u0 g1 | F u0 m1 | G u1 g1 | F u1 m1 | G u0 g1 | G u2 g1 | F u2 m1 | "
      "I u2 m1 | W u2 m1 | T u2 m1 g0 | G u1 g1 | I u1 m1 | W u1 m1 | "
      "T u1 m1 g0 | W u0 m1 | T u0 m1 g0");
}

TEST(ZeroPasses, OneReplicaHasNobodyToDealOver) {
  JobSpec job = ExampleJob({});
  job.mutable_parallelism()->set_zero(3);
  const std::string words = ProgramWords(
      ExampleDraft(job, "scatter gradients").plan, 0, Program::TRAIN);
  EXPECT_EQ(words.find_first_of("GT"), std::string::npos);
}

}  // namespace
}  // namespace troupe
