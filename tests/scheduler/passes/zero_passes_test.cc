#include <map>
#include <set>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "proto/plan/find_program.h"
#include "proto/plan/groups.h"
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

// A gather and a scatter for each group over which parts of a block are dealt:
// of experts too with `expert: 2`, and not with 4, where nobody has the same.
TEST(ZeroPasses, GatherAndScatterOverEachGroup) {
  for (const int expert : {2, 4}) {
    for (const int zero : {1, 2, 3}) {
      SCOPED_TRACE(testing::Message() << expert << " " << zero);
      JobSpec job = ExampleJob({.data = 4, .blocks = 1});
      ModelSpec& model = *job.mutable_model();
      model.set_architecture("mixtral");
      model.set_intermediate_size(12);
      model.set_num_experts(4);
      job.mutable_parallelism()->set_expert(expert);
      job.mutable_parallelism()->set_zero(zero);
      const Plan plan = ExampleDraft(job, "scatter gradients").plan;
      std::map<std::pair<Instruction::Kind, int>, std::set<std::string>> over;
      const Instruction* before = nullptr;
      for (const Instruction& instruction :
           FindProgram(plan.roles(0), Program::TRAIN)->instructions()) {
        const bool is_of_zero =
            instruction.kind() == Instruction::GATHER_PARAMETERS ||
            instruction.kind() == Instruction::SCATTER_GRADS;
        if (is_of_zero && instruction.unit() == 1) {
          over[{instruction.kind(), instruction.part()}].insert(
              SpansText(plan.groups(instruction.group())));
          // They follow one another.
          if (instruction.part() == 1) {
            EXPECT_EQ(before->kind(), instruction.kind());
            EXPECT_EQ(before->unit(), 1);
            EXPECT_EQ(before->part(), 0);
          }
        }
        before = &instruction;
      }
      EXPECT_EQ(over.size(), expert == 2 ? 4u : 2u);
      for (const auto& [what, groups] : over) {
        const std::string wanted = what.second == 1 ? "data"
                                   : expert == 2    ? "data x expert"
                                                    : "expert";
        EXPECT_EQ(groups, std::set<std::string>{wanted});
      }
    }
  }
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
