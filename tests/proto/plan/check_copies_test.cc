// Which copies of states a plan keeps, and plans broken in what they keep:
// every fault is found, and named.
#include "proto/plan/check_copies.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/copies.h"
#include "proto/plan/find_program.h"
#include "proto/plan/mesh.h"
#include "tests/proto/plan/planted.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Of two ranks that hold the same, or halves of it.
JobSpec Job(int zero) {
  JobSpec job = ExampleJob({.data = 2});
  job.mutable_parallelism()->set_zero(zero);
  job.mutable_recovery();
  return job;
}

TEST(Copies, GoToAnotherRankAndBack) {
  for (const auto& sizes : std::vector<std::vector<int>>{
           {2, 1}, {3, 1}, {1, 4}, {3, 2}, {4, 5}, {1, 7}}) {
    for (const char* const group : {kCopiesGroup, kOppositeCopiesGroup}) {
      Plan plan;
      Mesh& mesh = *plan.mutable_mesh();
      for (size_t i = 0; i < sizes.size(); ++i) {
        Axis& axis = *mesh.add_axes();
        axis.set_name(i == 0 ? "pipeline" : "data");
        axis.set_size(sizes[i]);
      }
      plan.add_groups()->set_name("data");
      plan.add_groups()->set_name(group);
      EXPECT_EQ(CopiesGroup(plan), 1);
      const bool opposite = group == std::string(kOppositeCopiesGroup);
      if (opposite && MeshSize(mesh) % 2 != 0) continue;
      for (int rank = 0; rank < MeshSize(mesh); ++rank) {
        EXPECT_NE(MirrorOf(plan, rank), rank) << MeshText(mesh);
        EXPECT_EQ(MirroredBy(plan, MirrorOf(plan, rank)), rank);
        EXPECT_EQ(MirrorOf(plan, MirroredBy(plan, rank)), rank);
        if (opposite)
          EXPECT_EQ(rank + MirrorOf(plan, rank), MeshSize(mesh) - 1);
      }
    }
  }
}

TEST(CheckCopies, ARankInTheMiddleHasNoOpposite) {
  JobSpec job = ExampleJob({.data = 3});
  job.mutable_parallelism()->set_zero(1);
  job.mutable_recovery();
  Plan plan = ExamplePlan(job);
  ASSERT_TRUE(CheckCopies(plan).ok());
  plan.mutable_groups(CopiesGroup(plan))->set_name(kOppositeCopiesGroup);
  EXPECT_FALSE(MayMirrorOpposite(plan));
  EXPECT_THAT(std::string(CheckCopies(plan).message()),
              HasSubstr("the rank in the middle has none"));
}

TEST(Copies, ReplicasNeedNoneElsewhere) {
  const Plan plan = ExamplePlan(Job(0));
  EXPECT_THAT(RanksAlike(plan, 0), ElementsAre(1));
  EXPECT_FALSE(NeedsMirrors(plan));
  EXPECT_EQ(ProgramWords(plan, 0, Program::KEEP), "H u0 | H u1 | H u2 | H u3");
}

TEST(Copies, SlicesGoToAnotherRank) {
  const Plan plan = ExamplePlan(Job(3));
  EXPECT_THAT(RanksAlike(plan, 0), IsEmpty());
  EXPECT_TRUE(NeedsMirrors(plan));
  EXPECT_THAT(ProgramWords(plan, 0, Program::KEEP),
              HasSubstr("H u0 | H u1 | H u2 | H u3 | M g"));
  EXPECT_EQ(plan.groups(CopiesGroup(plan)).carriers_size(), 1);
  EXPECT_EQ(plan.groups(CopiesGroup(plan)).carriers(0).backend(), "gloo");
}

// Ranks r and P - 1 - r have the same two stages.
TEST(Copies, TheTwoPipelinesOfChimeraHoldTheSame) {
  JobSpec job = ExampleJob({.micro_batches = 4, .blocks = 4});
  job.mutable_parallelism()->set_pipeline(2);
  job.mutable_parallelism()->set_pipeline_schedule("chimera");
  job.mutable_recovery();
  const Plan plan = ExamplePlan(job);
  EXPECT_THAT(RanksAlike(plan, 0), ElementsAre(1));
  EXPECT_FALSE(NeedsMirrors(plan));
}

TEST(Copies, ARankAloneKeepsNone) {
  JobSpec job = ExampleJob({});
  job.mutable_recovery();
  const Plan plan = ExamplePlan(job);
  EXPECT_EQ(FindProgram(plan.roles(0), Program::KEEP), nullptr);
  EXPECT_EQ(CopiesGroup(plan), -1);
}

Program& Keep(Plan& plan) { return ProgramOf(plan, 0, Program::KEEP); }

const PlantedFault kFaults[] = {
    {"a unit that nobody copies",
     [](Plan& p) { Remove(Keep(p), IndexOf(Keep(p), "H u1")); },
     "unit 1 is not copied"},
    {"a copy that nobody hands on",
     [](Plan& p) { Remove(Keep(p), Keep(p).instructions_size() - 1); },
     "hands its copy on 0 times, and some rank's state is held by no other"},
    {"a copy over another",
     [](Plan& p) {
       for (auto& operand :
            *Keep(p).mutable_instructions(1)->mutable_operands()) {
         if (operand.part() == Instruction::COPY) operand.set_offset(0);
       }
     },
     "writes over the copy of another unit"},
    {"a place that is too small",
     [](Plan& p) {
       for (auto& operand :
            *Keep(p).mutable_instructions(0)->mutable_operands()) {
         if (operand.part() == Instruction::COPY) operand.set_bytes(64);
       }
     },
     "has 64 bytes for "},
};

TEST(CheckCopies, NamesWhatIsWrong) {
  ASSERT_TRUE(CheckCopies(ExamplePlan(Job(3))).ok());
  for (const PlantedFault& fault : kFaults) {
    Plan plan = ExamplePlan(Job(3));
    fault.plant(plan);
    EXPECT_THAT(std::string(CheckCopies(plan).message()),
                HasSubstr(fault.message))
        << fault.name;
  }
}

TEST(CheckCopies, AllThatAreAskedForAndNoOthers) {
  Plan plan = ExamplePlan(Job(3));
  plan.mutable_job()->clear_recovery();
  EXPECT_THAT(std::string(CheckCopies(plan).message()),
              HasSubstr("keeps copies of its state, and nobody asks for them"));
  plan = ExamplePlan(ExampleJob({.data = 2}));
  plan.mutable_job()->mutable_recovery()->set_copies(1);
  EXPECT_THAT(
      std::string(CheckCopies(plan).message()),
      HasSubstr("keeps no copy of its state, and the job asks for one"));
}

}  // namespace
}  // namespace troupe
